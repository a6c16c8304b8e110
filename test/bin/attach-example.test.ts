import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startDaemon, TOKEN } from '../fixtures/daemon-process.js'

const EXAMPLE = fileURLToPath(new URL('../../examples/attach.mjs', import.meta.url))

t.test('the tour: a session is created, asks, is allowed, delivers and ends, all in one terminal', async (t) => {
  const { url, cwd } = await startDaemon(t)
  const args = [EXAMPLE, url, join(cwd, 'work'), 'Please write a report.']
  const client = spawn(process.execPath, args, { env: { ...process.env, TOKEN }, stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => client.kill('SIGKILL'))
  let shown = ''
  let answered = 0
  const exited = once(client, 'exit')
  for await (const chunk of client.stdout.setEncoding('utf8')) {
    shown += chunk
    const asked = shown.split('/allow or /deny').length - 1
    if (asked > answered) {
      answered++
      client.stdin.write('/allow\n')
    }
    if (answered === 2 && shown.endsWith('[idle]\n')) client.stdin.write('/close\n')
  }
  t.match(shown, /\+ report\.md \(\d+ bytes\)/)
  t.strictSame(await exited, [0, null])
})
