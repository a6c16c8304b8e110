import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { attached, eventFrame, said } from '../fixtures/client-platform.js'
import { compiledPackage } from '../fixtures/compiled.js'

const JOB = '00000000-0000-4000-8000-000000000000'
const STATS = { queued: 0, running: 1, parked: 0, paused: false, maxConcurrency: 1, dailyTokensUsed: 0 }

/** A command line without a terminal, at a server. */
async function command(t: Test, server: Server, args: string[]) {
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const bin = join(compiledPackage(), 'bin/session-gateway.js')
  const child = spawn(process.execPath, [bin, ...args, '--url', url], {
    env: { PATH: process.env.PATH, HOME: '/nonexistent', NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  let told = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    told += text
  })
  return { child, notes: () => told }
}

const COMMANDS: [what: string, args: string[], answered: number][] = [
  ['a job that is to be followed', ['jobs', 'watch', JOB], 0],
  ['a job that is followed', ['jobs', 'watch', JOB], 1],
  ['a job that was submitted', ['jobs', 'submit', '--wait', 'Hello.'], 0],
]
for (const [what, args, answered] of COMMANDS)
  t.test(`Ctrl-C leaves ${what} also while an answer is waited for that does not come`, async (t) => {
    let asked = (_path: string): void => {}
    const isAsked = new Promise<string>((resolve) => {
      asked = resolve
    })
    let reads = 0
    const server = createServer((request, response) => {
      if (request.method === 'GET' && request.url === `/v1/jobs/${JOB}` && reads++ < answered) {
        response.setHeader('content-type', 'application/json')
        response.end(JSON.stringify({ id: JOB, status: 'running' }))
        return
      }
      if (request.method === 'POST') {
        response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ id: JOB }))
        return
      }
      // where the command has a WebSocket of its own, it goes on without
      if (request.url === '/v1/queue/ws') return request.socket.destroy()
      if (request.url !== '/v1/queue/events') return asked(request.url!)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify({ type: 'queue_attached', stats: STATS })}\n\n`)
    })
    const { child, notes } = await command(t, server, args)
    t.equal(await isAsked, `/v1/jobs/${JOB}`)
    child.kill('SIGINT')
    t.strictSame(await once(child, 'close'), [130, null])
    t.equal(
      notes().replace(`Job ${JOB}\n`, ''),
      `session-gateway: The job goes on without you: session-gateway jobs watch ${JOB}\n`,
    )
  })

t.test('Ctrl-C leaves a session in which nothing is in progress, and interrupts another one', async (t) => {
  const interrupted: string[] = []
  for (const status of ['idle', 'running'] as const) {
    let isInterrupted = () => {}
    const interrupt = new Promise<void>((resolve) => {
      isInterrupted = resolve
    })
    const server = createServer((request, response) => {
      if (request.url?.startsWith(`/v1/sessions/${JOB}/events`)) {
        const changed = eventFrame({ type: 'status_changed', seq: 1, ts: 1, status })
        const frames = [attached(), changed, eventFrame(said(2, 'Well.')), { type: 'synced', seq: 2 }]
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        // in one piece: what is printed is synced
        response.write(frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join(''))
        return
      }
      if (request.method === 'POST') {
        interrupted.push(status)
        isInterrupted()
      }
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ id: JOB, status, ok: true }))
    })
    const { child, notes } = await command(t, server, ['sessions', 'attach', JOB, '--json'])
    let printed = ''
    for await (const text of child.stdout.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      printed += text
      if (printed.includes('Well.')) break
    }
    child.stdout.resume()
    child.kill('SIGINT')
    if (status === 'running') {
      await interrupt
      t.equal(notes(), 'Interrupting. Press Ctrl-C again to leave.\n')
      child.kill('SIGINT')
    }
    t.strictSame(await once(child, 'close'), [130, null])
    t.match(notes(), /session-gateway: Left\. The session is still there\.\n$/)
  }
  t.strictSame(interrupted, ['running'])
})
