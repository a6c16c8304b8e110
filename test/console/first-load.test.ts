import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { buildConsole } from '../fixtures/console-browser.js'

const LIMIT_BYTES = 100 * 1024

const built = buildConsole()
const html = readFileSync(join(built, 'index.html'), 'utf8')

t.test('the first load is at most 100 KB of script', async (t) => {
  const scripts = [...html.matchAll(/<script[^>]* src="([^"]+)"/g)].map(([, src]) => src!)
  t.equal(scripts.length, 1)
  // what the first script imports at once is fetched with it; what it imports later is not
  const seen = new Set<string>()
  const follow = (path: string): void => {
    if (seen.has(path)) return
    seen.add(path)
    const text = readFileSync(join(built, path), 'utf8')
    for (const [, from] of text.matchAll(/(?:import|from)\s*"\.\/([^"]+\.js)"/g)) follow(`assets/${from}`)
  }
  for (const script of scripts) follow(script.replace('./', ''))
  // the screen that it begins with comes at once, too
  const home = readdirSync(join(built, 'assets')).find((name) => /^inbox-.*\.js$/.test(name))
  if (home) follow(`assets/${home}`)
  const bytes = [...seen].reduce((sum, path) => sum + gzipSync(readFileSync(join(built, path)), { level: 9 }).length, 0)
  t.ok(bytes <= LIMIT_BYTES, `${bytes} bytes of ${LIMIT_BYTES} in ${seen.size} files`)
})

t.test('the page has nothing inline, nothing of another origin, and works under any prefix', async (t) => {
  t.notMatch(html, /<script(?![^>]* src=)/)
  t.notMatch(html, /<style|\sstyle=|\son\w+=/)
  for (const [, address] of html.matchAll(/(?:src|href)="([^"]+)"/g)) t.match(address, /^\.\//)
  const names = readdirSync(join(built, 'assets'))
  for (const name of names) t.match(name, /-[\w-]{8}\.(js|css)(\.br|\.gz)?$/, 'hashed, and no map')
})
