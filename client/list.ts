import { strange } from './errors.js'
import { type Http, type Query, readJson } from './http.js'

/** A list that is fetched page by page, as far as it is read. Each iteration starts from the beginning. */
export interface List<T> extends AsyncIterable<T> {
  /** Page by page: for "load more". After a page that could not be fetched, `next` of its iterator asks for the same one again. */
  pages(): { [Symbol.asyncIterator](): Pages<T> }
  /** Everything, at once. */
  toArray(): Promise<T[]>
}

/** The pages of a list, one after the other. */
export interface Pages<T> extends AsyncIterator<T[], undefined> {
  /** Whether the page that came last was the last: how many items it has says nothing of that. */
  readonly isAtEnd: boolean
}

/** The parameters of the page that `Link: <…>; rel="next"` announces; the rest of its URL may have been written by a proxy. */
function nextQuery(link: string | null): Query | undefined {
  const target = /<([^>]*)>\s*;[^,]*\brel="?next\b/.exec(link ?? '')?.[1]
  return target === undefined ? undefined : Object.fromEntries(new URL(target, 'http://x').searchParams)
}

export const listOf = <T>(http: Http, path: string, query: Query, signal?: AbortSignal): List<T> =>
  pagedList(query, async (query) => {
    const { body, headers } = await http.exchange('GET', path, { query, signal }, readJson)
    return { page: listIn<T>(body), next: nextQuery(headers.get('link')) }
  })

export function listIn<T>(body: unknown): T[] {
  if (!Array.isArray(body)) throw strange('no list')
  return body
}

/** One page, and what asks for the one after it. */
type Fetched<T> = { page: T[]; next: Query | undefined }

export function pagedList<T>(first: Query, fetchPage: (query: Query) => Promise<Fetched<T>>): List<T> {
  const pages = (): ReturnType<List<T>['pages']> => ({ [Symbol.asyncIterator]: () => pageIterator(first, fetchPage) })
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

/** No generator: one that has thrown is at its end, and the rest of the list would be taken for not there. */
function pageIterator<T>(first: Query, fetchPage: (query: Query) => Promise<Fetched<T>>): Pages<T> {
  let query: Query | undefined = first
  let turned: Promise<unknown> = Promise.resolve()
  const turn = async (): Promise<IteratorResult<T[], undefined>> => {
    if (!query) return { done: true, value: undefined }
    const { page, next } = await fetchPage(query)
    // whoever has left meanwhile wants none
    query &&= next
    return { done: false, value: page }
  }
  return {
    get isAtEnd() {
      return !query
    },
    next() {
      const result = turned.then(turn)
      turned = result.catch(() => {})
      return result
    },
    async return() {
      query = undefined
      return { done: true, value: undefined }
    },
  }
}
