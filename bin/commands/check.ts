import { shortPath } from '../../src/daemon/config-problem.js'
import { loadConfig } from '../../src/daemon/load-config.js'
import { summarize } from '../../src/daemon/summary.js'
import { endWith } from '../terminal/exit.js'

/**
 * Checks everything that would keep the daemon from starting, short of listening, and the first session of each profile. Warnings go to stderr as log lines.
 * @throws ConfigError with all that is wrong
 */
export async function check(path: string): Promise<void> {
  const loaded = loadConfig(path)
  const { config, file } = loaded
  // Loaded only now: what the file alone shows is told without waiting for the whole server's code.
  const { prepareServer } = await import('../../src/daemon/daemon.js')
  const prepared = await prepareServer(
    { ...loaded, config: { ...config, log: { level: 'warn', pretty: true } } },
    process.stderr,
    { thorough: true },
  )
  await prepared.server.close()
  const lines = summarize(config, prepared).map((line) => `  ${line}\n`)
  await endWith(`ok: ${shortPath(file)} can be served\n${lines.join('')}`)
}
