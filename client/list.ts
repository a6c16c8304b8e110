import type { Http, Query } from './http.js'

/** A list that is fetched page by page, as far as it is read. Each iteration starts from the beginning. */
export interface List<T> extends AsyncIterable<T> {
  /** Page by page: for "load more". */
  pages(): AsyncIterable<T[]>
  /** Everything, at once. */
  toArray(): Promise<T[]>
}

/** The parameters of the page that `Link: <…>; rel="next"` announces; the rest of its URL may have been written by a proxy. */
function nextQuery(link: string | null): Query | undefined {
  const target = /<([^>]*)>\s*;[^,]*\brel="?next\b/.exec(link ?? '')?.[1]
  return target === undefined ? undefined : Object.fromEntries(new URL(target, 'http://x').searchParams)
}

export function listOf<T>(http: Http, path: string, query: Query, signal?: AbortSignal): List<T> {
  async function* pages() {
    for (let next: Query | undefined = query; next; ) {
      const { body, headers } = await http.exchange('GET', path, { query: next, signal }, (response) => response.json())
      yield body as T[]
      next = nextQuery(headers.get('link'))
    }
  }
  return iterablePages(pages)
}

export function iterablePages<T>(pages: () => AsyncIterable<T[]>): List<T> {
  return {
    pages,
    async toArray() {
      const all: T[] = []
      for await (const page of pages()) for (const item of page) all.push(item)
      return all
    },
    async *[Symbol.asyncIterator]() {
      for await (const page of pages()) yield* page
    },
  }
}
