import { execFileSync } from 'node:child_process'
import { symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { readPlainFile } from '../../src/lib/plain-file.js'

t.test('a file is read as a whole, and what is something else is not opened', async (t) => {
  const folder = t.testdir({ text: 'é'.repeat(100_000), empty: '', folder: {} })
  const at = (name: string) => join(folder, name)
  t.equal(await readPlainFile(at('text')), 'é'.repeat(100_000))
  t.equal(await readPlainFile(at('empty')), '')
  t.equal(await readPlainFile(at('none')), undefined)
  t.equal(await readPlainFile(at('text/none')), undefined)
  symlinkSync(at('text'), at('link'))
  t.equal(await readPlainFile(at('link')), 'é'.repeat(100_000))
  symlinkSync('/dev/zero', at('device'))
  execFileSync('mkfifo', [at('pipe')])
  for (const name of ['device', 'pipe', 'folder']) await t.rejects(readPlainFile(at(name)), /is no file/, name)
  writeFileSync(at('long'), '')
  truncateSync(at('long'), 16 * 1024 * 1024)
  t.equal((await readPlainFile(at('long')))?.length, 16 * 1024 * 1024)
  truncateSync(at('long'), 16 * 1024 * 1024 + 1)
  await t.rejects(readPlainFile(at('long')), /more than 16777216 bytes/)
})
