import { Type } from '@sinclair/typebox'
import { request } from 'undici'
import type { Clock } from '../../lib/clock.js'
import { tried } from '../../lib/tried.js'
import type { EgressGuard } from '../../webhooks/egress.js'
import { type ScratchFiles, scratchPath } from './files.js'
import { htmlToText } from './html-text.js'
import { bundledTool, failure, type ProviderTool, text } from './tool.js'

const MAX_REDIRECTS = 5
const FETCH_MAX_BYTES = 1024 * 1024
const FETCH_TIMEOUT_MS = 20_000
const DOWNLOAD_TIMEOUT_MS = 120_000

const url = Type.String({ minLength: 1, maxLength: 8192, description: 'An http or https URL' })

export interface WebSearchResult {
  title: string
  url: string
  snippet?: string
}

/** A search backend of the host; a rejection reaches the model as the tool's error. */
export type WebSearch = (query: string, options: { signal: AbortSignal }) => Promise<WebSearchResult[]>

interface Page {
  url: URL
  status: number
  contentType: string
  body: Buffer
}

/** GETs URLs that an agent chose: through the guard, each redirect checked again, and nothing read beyond the limits. */
export class WebReader {
  readonly #guard: EgressGuard
  readonly #clock: Clock

  constructor(guard: EgressGuard, clock: Clock) {
    this.#guard = guard
    this.#clock = clock
  }

  /** @throws {GatewayError} `SG_ERR_EGRESS_BLOCKED` when the URL is refused by the look of it */
  check(url: string): URL {
    return this.#guard.checkUrl(url)
  }

  async get(from: string, limits: { maxBytes: number; timeoutMs: number; signal: AbortSignal }): Promise<Page> {
    const late = new AbortController()
    const deadline = this.#clock.after(limits.timeoutMs, () =>
      late.abort(new Error(`No complete answer within ${limits.timeoutMs / 1000} s.`)),
    )
    try {
      return await this.#follow(from, limits.maxBytes, AbortSignal.any([limits.signal, late.signal]))
    } finally {
      deadline.cancel()
    }
  }

  async #follow(from: string, maxBytes: number, signal: AbortSignal): Promise<Page> {
    let url = this.#guard.checkUrl(from)
    for (let hops = 0; ; hops++) {
      const { dispatcher } = this.#guard
      // No compression: a body is what it weighs.
      const headers = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'session-gateway' }
      const answer = await request(url, { dispatcher, signal, headers })
      const leave = () => answer.body.on('error', () => {}).destroy()
      const location = headerOf(answer.headers.location)
      if (answer.statusCode >= 300 && answer.statusCode < 400 && location) {
        leave()
        if (hops === MAX_REDIRECTS) throw new Error(`${from} redirects more than ${MAX_REDIRECTS} times.`)
        if (!URL.canParse(location, url.href)) throw new Error(`${url.host} redirects to something that is no URL.`)
        url = this.#guard.checkUrl(new URL(location, url))
        continue
      }
      const encoding = headerOf(answer.headers['content-encoding'])
      if (encoding && encoding !== 'identity') {
        leave()
        throw new Error(`${url.host} answers in ${encoding} only.`)
      }
      const chunks: Buffer[] = []
      let bytes = 0
      for await (const chunk of answer.body as AsyncIterable<Buffer>) {
        bytes += chunk.byteLength
        if (bytes > maxBytes) throw new Error(`${url.host} sends more than the ${maxBytes} bytes that are let in here.`)
        chunks.push(chunk)
      }
      const contentType = headerOf(answer.headers['content-type']).toLowerCase()
      return { url, status: answer.statusCode, contentType, body: Buffer.concat(chunks) }
    }
  }
}

export const webFetchTool = (reader: WebReader): ProviderTool =>
  bundledTool({
    name: 'web_fetch',
    description: 'Reads a web page or a text document. HTML is reduced to its text.',
    input: Type.Object({ url }),
    asks: 'unless-allowed',
    title: ({ url }) => `Fetch ${new URL(url).href}`,
    check: ({ url }) => reader.check(url),
    async run({ url }, { signal }) {
      const page = await reader.get(url, { maxBytes: FETCH_MAX_BYTES, timeoutMs: FETCH_TIMEOUT_MS, signal })
      const content = readable(page)
      if (content === undefined) return failure(`${page.url} is no text (${page.contentType}). Use download for it.`)
      return { content: `${page.url} (HTTP ${page.status})\n\n${content}`, isError: page.status >= 400 }
    },
  })

export const downloadTool = (reader: WebReader, files: ScratchFiles): ProviderTool =>
  bundledTool({
    name: 'download',
    description: 'Saves what a URL serves as a file of the scratch filesystem.',
    input: Type.Object({
      url,
      path: Type.Optional(
        Type.String({ minLength: 1, description: 'Where to save it; default: the last part of the URL' }),
      ),
    }),
    asks: 'unless-allowed',
    title: ({ url }) => `Download ${new URL(url).href}`,
    check: ({ url, path }) => reader.check(url) && keyFor(url, path),
    async run({ url, path }, { signal }) {
      const key = keyFor(url, path)
      const page = await reader.get(url, { maxBytes: files.roomFor(key), timeoutMs: DOWNLOAD_TIMEOUT_MS, signal })
      if (page.status >= 400) return failure(`${page.url} answered HTTP ${page.status}.`)
      const file = files.write(key, page.body)
      return text(`Saved ${page.url} as ${file.path} (${file.bytes} bytes).`)
    },
  })

export const webSearchTool = (search: WebSearch): ProviderTool =>
  bundledTool({
    name: 'web_search',
    description: 'Searches the web.',
    input: Type.Object({ query: Type.String({ minLength: 1, maxLength: 1000 }) }),
    asks: 'unless-allowed',
    title: ({ query }) => `Search the web for ${query}`,
    run: async ({ query }, { signal }) => text(JSON.stringify({ results: await search(query, { signal }) })),
  })

const headerOf = (value: string | string[] | undefined): string => (Array.isArray(value) ? value[0] : value) ?? ''

const TEXT_TYPE = /^(text\/|application\/([\w.-]+\+)?(json|xml|javascript|yaml|x-www-form-urlencoded))/

function readable({ url, contentType, body }: Page): string | undefined {
  const isHtml = /^(text\/html|application\/xhtml\+xml)/.test(contentType)
  if (!isHtml && contentType !== '' && !TEXT_TYPE.test(contentType)) return undefined
  const charset = /charset="?([\w-]+)/.exec(contentType)?.[1] ?? 'utf-8'
  const decoder = tried(() => new TextDecoder(charset)) ?? new TextDecoder()
  const decoded = decoder.decode(body)
  if (!isHtml) return contentType === '' && decoded.includes('\0') ? undefined : decoded
  return htmlToText(decoded, url)
}

const keyFor = (url: string, path: string | undefined) => scratchPath(path ?? nameIn(url))

/** The last part of a URL's path as a file name. */
function nameIn(url: string): string {
  const last = (URL.canParse(url) && new URL(url).pathname.split('/').at(-1)) || 'download'
  return tried(() => decodeURIComponent(last).replace(/[/\\]/g, '_')) ?? last
}
