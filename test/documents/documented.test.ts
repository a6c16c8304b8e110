import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const LOADERS = ['register', 'documented'].map(
  (name) => `--import=${new URL(`../loader/${name}.mjs`, import.meta.url)}`,
)
const WORLD = fileURLToPath(new URL('../fixtures/planted-faults.ts', import.meta.url))

/** What becomes of a process in which this is seen, that belongs to no test file or to the one with this list. */
function seen(what: string, list?: string) {
  const { SESSION_GATEWAY_UNDOCUMENTED: _, ...others } = process.env
  const env = { ...others, ...(list && { SESSION_GATEWAY_UNDOCUMENTED: list }) }
  const { status, stderr } = spawnSync(process.execPath, [...LOADERS, WORLD, what], { encoding: 'utf8', env })
  return { status, stderr }
}

t.test('what is in the documents fails nothing', async (t) => {
  t.same(seen('nothing wrong'), { status: 0, stderr: '' })
})

t.test('what is not fails the file that sees it, or that started the process which does', async (t) => {
  const faults = [
    'GET /v1/sessions (listSessions) answered 418, which is not declared',
    'GET /v1/sessions (listSessions) answered 200, not as declared: /0',
    'GET /v1/sessions (listSessions) answered 200 as text/html, which is not declared',
    'GET /v1/sessions (listSessions) answered 200 with location, which is not declared',
    'GET /v1/sessions/x (getSession) answered 404, not as declared: its code is none of the declared',
  ]
  const list = join(t.testdir(), 'list')
  const first = seen('planted')
  t.equal(first.status, 1)
  t.same(seen('planted', list), { status: 0, stderr: '' }, 'only the first tells')
  for (const [where, told] of Object.entries({ first: first.stderr, second: readFileSync(list, 'utf8') })) {
    for (const fault of faults)
      t.equal(told.split(fault).length, 3, `${where}, over the network and injected: ${fault}`)
    t.match(told, /\(followQueue\) streamed a frame that is not as declared: \/stats/, where)
  }
  // the other end of a socket is where the test is
  t.match(first.stderr, /queue\/ws sent a frame that is not as declared: \/stats/)
})
