import { readFileSync, statSync } from 'node:fs'
import t from 'tap'
import { privateFile } from '../../../src/engines/cli/workspace/private-files.js'

t.test('who is given a file that another session is having written finds all of it', async (t) => {
  const content = 'DO_NOT_TRUST'.repeat(1_000_000)
  const seen = await Promise.all(
    Array.from({ length: 8 }, async () => {
      const path = await privateFile('folders.json', content)
      return { path, isWhole: readFileSync(path, 'utf8') === content }
    }),
  )
  t.strictSame(new Set(seen.map(({ path }) => path)).size, 1, 'the same content is the same file')
  t.ok(seen.every(({ isWhole }) => isWhole))
  t.equal(statSync(seen[0]!.path).mode & 0o777, 0o600)
})

t.test('what cannot be written is told as a start that failed, with where there is to be room', async (t) => {
  const message = /could not write a file for the agent to its temporary directory \(TMPDIR\): ENOENT\./
  await t.rejects(privateFile('no/such', ''), { code: 'SG_ERR_ENGINE_START', message })
})
