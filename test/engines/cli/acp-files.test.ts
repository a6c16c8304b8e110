import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { prepareLoad } from '../../../src/engines/cli/acp/overwritten.js'
import { BUILT_IN_AGENTS } from '../../../src/engines/cli/agent-table.js'

const ID = '0123abcd-0000-4000-8000-000000000000'
const OWN = 'session-2026-01-02T03-04-0123abcd.jsonl'
const BEGUN = 'session-2026-01-02T03-09-0123abcd.jsonl'
const OTHER = 'session-2026-01-02T03-09-4567cdef.jsonl'

function build(t: Test, name: string) {
  const home = t.testdir()
  const folder = join(home, '.gemini/tmp/some-project/chats')
  mkdirSync(folder, { recursive: true })
  const write = (...files: string[]) => {
    for (const file of files) writeFileSync(join(folder, file), '{}')
  }
  const prepare = (gone = new AbortController().signal) =>
    prepareLoad({ row: BUILT_IN_AGENTS.get(name)!, env: { GEMINI_CLI_HOME: home } }, ID, gone)
  return { write, prepare, files: () => readdirSync(folder).sort() }
}

t.test('a file that gemini begins beside the session that it loads is removed, and no other', async (t) => {
  const { write, prepare, files } = build(t, 'gemini')
  write(OWN)
  const loading = await prepare()
  write(BEGUN, OTHER)
  await loading.tidy()
  t.strictSame(files(), [OWN, OTHER])
})

t.test('the only file of a session stays', async (t) => {
  const { write, prepare, files } = build(t, 'gemini')
  const loading = await prepare()
  write(BEGUN)
  await loading.tidy()
  t.strictSame(files(), [BEGUN])
})

t.test('other agents keep theirs', async (t) => {
  const { write, prepare, files } = build(t, 'codex')
  write(OWN)
  const loading = await prepare()
  write(BEGUN)
  await loading.tidy()
  t.strictSame(files(), [OWN, BEGUN])
})

t.test('nobody waits for the next minute of a session that is closed meanwhile', async (t) => {
  const { write, prepare } = build(t, 'gemini')
  for (const inMs of [0, 60_000]) {
    const minute = new Date(Date.now() + inMs).toISOString().slice(0, 16).replace(':', '-')
    write(`session-${minute}-0123abcd.jsonl`)
  }
  const gone = new AbortController()
  const loading = prepare(gone.signal)
  gone.abort()
  await t.rejects(loading, { name: 'AbortError' })
})
