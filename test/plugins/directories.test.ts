import { mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { FastifyRequest } from 'fastify'
import t, { type Test } from 'tap'
import { buildServer } from '../fixtures/build.js'

const many = Object.fromEntries(Array.from({ length: 60 }, (_, index) => [`n${String(index).padStart(2, '0')}`, {}]))

async function world(t: Test, options: Parameters<typeof buildServer>[1] = {}) {
  const top = realpathSync(
    t.testdir({
      work: { site: { src: {} }, sitemap: {}, '.hidden': {}, 'a file': 'x', many },
      outside: { site: {} },
    }),
  )
  const root = join(top, 'work')
  symlinkSync(join(root, 'site'), join(root, 'link-in'))
  symlinkSync(join(top, 'outside'), join(root, 'link-out'))
  symlinkSync(join(root, 'nowhere'), join(root, 'link-nowhere'))
  symlinkSync(root, join(top, 'outside', 'back'))
  const { call } = await buildServer(t, { allowedCwdRoots: [root], ...options })
  const ask = (prefix: string, more = '', headers = {}) =>
    call('GET', `/directories?prefix=${encodeURIComponent(prefix)}${more}`, undefined, headers)
  const complete = async (...asked: Parameters<typeof ask>) => (await ask(...asked)).json.directories as string[]
  return { top, root, call, ask, complete }
}

t.test('a path is completed inside the roots', async (t) => {
  const { root, call, ask, complete, top } = await world(t)
  t.same((await call('GET', '/directories')).json, { directories: [root], truncated: false })
  t.same(await complete(`${root}/`), [join(root, 'site'), join(root, 'many'), join(root, 'sitemap')].sort())
  t.same(await complete(`${root}/si`), [join(root, 'site'), join(root, 'sitemap')])
  t.same(await complete(`${root}/site`), [join(root, 'site'), join(root, 'sitemap')])
  t.same(await complete(`${root}/site/`), [join(root, 'site', 'src')])
  t.same(await complete(`${root}/link-in`), [join(root, 'site')], 'a link counts as what it leads to')
  t.same(await complete(`${root}/link-in/`), [join(root, 'site', 'src')])
  t.same(await complete(root.slice(0, -2)), [root], 'on the way to a root there is the root')
  t.same(await complete(`${root}/.`), [join(root, '.hidden')])
  t.ok((await complete(`${root}/`, '&hidden=true')).includes(join(root, '.hidden')))
  t.same(await complete(`${root}/site/../si`), [join(root, 'site'), join(root, 'sitemap')])
  const { directories, truncated } = (await ask(`${root}/many/`)).json
  t.equal(directories.length, 50)
  t.equal(truncated, true)
  t.match(await ask('relative/path'), { status: 400, json: { errors: [{ path: 'prefix' }] } })
  t.match(await ask('~'), { status: 400 })
  t.match(await ask('x'.repeat(5000)), { status: 400 })
  mkdirSync(join(top, 'work', 'later'))
  t.same(await complete(`${root}/la`), [join(root, 'later')])
})

t.test('what lies outside is as if it were not there', async (t) => {
  const { root, top, ask } = await world(t)
  const nothing = JSON.stringify({ directories: [], truncated: false })
  for (const prefix of [
    join(top, 'outside/'),
    join(top, 'outside', 'si'),
    join(top, 'absent/'),
    `${root}/link-out`,
    `${root}/link-out/`,
    `${root}/link-nowhere`,
    `${root}/../outside/`,
    `${root}/site/../../outside/si`,
    `${root}/a file/`,
    `${root}/absent/x`,
    '/etc/',
    '/nothing-of-that-name/',
    `${root}/\0`,
  ])
    t.equal((await ask(prefix)).text, nothing, prefix)
})

t.test('whom no profile is allowed is told nothing, and without roots any directory may be one', async (t) => {
  const authenticate = ({ headers }: FastifyRequest) => ({
    allowedProfiles: headers.authorization === 'none' ? [] : ['scripted'],
  })
  const { root, complete } = await world(t, { authenticate })
  t.same(await complete(`${root}/si`, '', { authorization: 'none' }), [])
  t.same(await complete(`${root}/si`), [join(root, 'site'), join(root, 'sitemap')])
  const anywhere = await buildServer(t)
  t.same((await anywhere.call('GET', '/directories')).json.directories, ['/'])
  const { json } = await anywhere.call('GET', `/directories?prefix=${encodeURIComponent(`${root}/si`)}`)
  t.same(json.directories, [join(root, 'site'), join(root, 'sitemap')])
  const closed = await buildServer(t, { allowedCwdRoots: [] })
  t.same((await closed.call('GET', '/directories')).json.directories, [])
})
