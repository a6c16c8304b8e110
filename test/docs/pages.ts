import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import GithubSlugger from 'github-slugger'
import { marked, type Token } from 'marked'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** A fenced block of a page. */
export interface Block {
  /** As in `docs/clients.md:12`. */
  at: string
  lang: string
  /** The rest of the info string: a file to write the block to, or what a JSON block is. */
  name: string
  text: string
}

export interface Page {
  file: string
  blocks: Block[]
  links: string[]
  /** What `#…` may name. */
  anchors: ReadonlySet<string>
}

function readPage(file: string): Page {
  const source = readFileSync(`${ROOT}${file}`, 'utf8')
  const page = { file, blocks: [] as Block[], links: [] as string[], anchors: new Set<string>() }
  const slugger = new GithubSlugger()
  let offset = 0
  const visit = (token: Token) => {
    if (token.type === 'code') {
      // lists are looked into after their own text was passed
      const index = Math.max(source.indexOf(token.raw, offset), source.indexOf(token.raw))
      const [lang = '', ...rest] = (token.lang ?? '').split(' ')
      const line = source.slice(0, Math.max(index, 0)).split('\n').length
      page.blocks.push({ at: `${file}:${line}`, lang, name: rest.join(' '), text: token.text })
      offset = index + token.raw.length
    }
    if (token.type === 'link' || token.type === 'image') page.links.push(token.href)
    if (token.type === 'heading') page.anchors.add(slugger.slug(token.text.replace(/[`*]/g, '')))
  }
  marked.walkTokens(marked.lexer(source), visit)
  return page
}

/** What a reader is led through: the README, everything in docs/, and the changelog. */
export const PAGES: readonly Page[] = [
  'README.md',
  ...readdirSync(`${ROOT}docs`)
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
  'CHANGELOG.md',
]
  .filter((file) => existsSync(`${ROOT}${file}`))
  .map(readPage)
