import { signal } from '@preact/signals'

/** Where the person is: `#/sessions/ID/123?find=x` is `{ name: 'sessions', params: ['ID', '123'], query: find=x }`. */
export interface Route {
  name: string
  params: readonly string[]
  query: URLSearchParams
}

export const HOME = 'inbox'

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

export function routeOf(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2)
  const [name = '', ...params] = path.split('/').map(decoded)
  return { name: name || HOME, params: params.filter((param) => param !== ''), query: new URLSearchParams(search) }
}

export const route = signal(routeOf(location.hash))

let isFirst = true
/** Whether this is another place than the one that the page was loaded for. */
export const hasGoneOn = (): boolean => !isFirst

addEventListener('hashchange', () => {
  isFirst = false
  route.value = routeOf(location.hash)
})

/** The link to a place: `hrefTo('sessions', id, 123)`. */
export const hrefTo = (name: string, ...params: (string | number)[]): string =>
  `#/${[name, ...params].map((part) => encodeURIComponent(part)).join('/')}`

export function go(href: string, { replace = false } = {}): void {
  if (!replace) location.hash = href
  else {
    history.replaceState(null, '', href)
    route.value = routeOf(location.hash)
  }
}

/** To be called before what takes its time. @returns `go`, for as long as nobody has gone elsewhere by then */
export function goer(): (href: string) => void {
  const { name, params } = route.value
  return (href) => {
    const now = route.value
    if (now.name === name && now.params[0] === params[0]) go(href)
  }
}
