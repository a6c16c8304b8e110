import { statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { makeDirectory } from '../../src/lib/make-directory.js'

t.test('makes what is missing above, for this account alone, and takes what is there', async (t) => {
  const folder = t.testdir()
  await Promise.all([makeDirectory(join(folder, 'a/b/c')), makeDirectory(join(folder, 'a/b/d'))])
  for (const name of ['a', 'a/b', 'a/b/c', 'a/b/d']) t.equal(statSync(join(folder, name)).mode & 0o777, 0o700, name)
  symlinkSync(join(folder, 'a'), join(folder, 'link'))
  await makeDirectory(join(folder, 'link/b'))
  writeFileSync(join(folder, 'file'), '')
  await t.rejects(makeDirectory(join(folder, 'file')), { code: 'EEXIST' })
  await t.rejects(makeDirectory(join(folder, 'file/more')), { code: 'ENOTDIR' })
  symlinkSync(join(folder, 'nowhere/at/all'), join(folder, 'dangling'))
  await t.rejects(makeDirectory(join(folder, 'dangling/more')), { code: /ENOENT|EEXIST/ })
})

t.test('ends where the kernel lets nobody make anything', { skip: process.platform !== 'linux' }, async (t) => {
  await t.rejects(makeDirectory('/proc/session-gateway/deeper'), { code: 'ENOENT' })
})
