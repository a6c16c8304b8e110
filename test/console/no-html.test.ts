import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'

const SOURCES = fileURLToPath(new URL('../../console/src/', import.meta.url))
/** What makes markup or code of a string, or takes an address to it. */
const MAKES =
  /innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|dangerouslySet|srcdoc|\beval\(|new Function|setTimeout\(\s*['"`]|['"`]javascript:/

t.test('no source of the console makes markup of a string', async (t) => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name))
  t.ok(files.length > 20)
  const guilty = files.filter((name) => MAKES.test(readFileSync(SOURCES + name, 'utf8')))
  t.strictSame(guilty, [])
})
