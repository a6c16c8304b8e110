import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { compiledPackage } from '../fixtures/compiled.js'

const JOB = '00000000-0000-4000-8000-000000000000'
const STATS = { queued: 0, running: 1, parked: 0, paused: false, maxConcurrency: 1, dailyTokensUsed: 0 }

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
      if (request.url !== '/v1/queue/events') return asked(request.url!)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify({ type: 'queue_attached', stats: STATS })}\n\n`)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.teardown(() => {
      server.closeAllConnections()
      server.close()
    })
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    const bin = join(compiledPackage(), 'bin/session-gateway.js')
    const child = spawn(process.execPath, [bin, ...args, '--url', url], {
      env: { PATH: process.env.PATH, HOME: '/nonexistent', NO_COLOR: '1' },
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    t.teardown(() => child.kill('SIGKILL'))
    let told = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      told += text
    })
    t.equal(await isAsked, `/v1/jobs/${JOB}`)
    child.kill('SIGINT')
    t.strictSame(await once(child, 'close'), [130, null])
    t.equal(
      told.replace(`Job ${JOB}\n`, ''),
      `session-gateway: The job goes on without you: session-gateway jobs watch ${JOB}\n`,
    )
  })
