import type { FastifyRequest } from 'fastify'

/** A parameter of a path, with the expression that it is to match; or a colon, which is doubled there. */
const PARAMETER = /::|:(\w+)(?:\((?:[^()]|\([^()]*\))*\))?/g

/** What a path of a router matches, as the source of an expression: a parameter anything up to the next slash, a `*` all that follows. */
export const sourceOf = (path: string): string =>
  path
    .split('/')
    .map((part) => {
      if (part === '*') return '.*'
      return part.includes(':') ? '[^/]+' : part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
    })
    .join('/')

/** Where a scope is for whoever asks: its prefix, in which a host may have parameters. */
export function ownPlace(prefix: string, { params }: FastifyRequest): string {
  if (!prefix.includes(':')) return prefix
  const given = params as Record<string, string>
  return prefix.replace(PARAMETER, (_part, name?: string) =>
    name === undefined ? ':' : encodeURIComponent(given[name] ?? ''),
  )
}
