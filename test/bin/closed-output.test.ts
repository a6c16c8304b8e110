import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import t from 'tap'
import { startDaemon, TOKEN } from '../fixtures/daemon-process.js'

const COMMAND = ['../loader/register.mjs', '../../bin/session-gateway.ts'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)

t.test('a command whose reader has read enough ends quietly', async (t) => {
  const { url, createSession } = await startDaemon(t)
  await createSession('Hello!')
  const [loader, bin] = COMMAND
  // `true` has gone long before there is anything to read
  const line = '"$@" | true'
  const words = [process.execPath, `--import=${loader}`, bin!, 'sessions', 'ls', '--output', 'jsonl', '--url', url]
  const env = { ...process.env, SESSION_GATEWAY_TOKEN: TOKEN }
  const { stderr } = await promisify(execFile)('/bin/sh', ['-c', line, 'sh', ...words], { env })
  t.equal(stderr, '')
})
