import type { FastifyRequest } from 'fastify'

/** A parameter of a path, with the expression that it is to match; or a colon, which is doubled there. */
const PARAMETER = /::|:(\w+)(?:\((?:[^()]|\([^()]*\))*\))?/g

/** Where a scope is for whoever asks: its prefix, in which a host may have parameters. */
export function ownPlace(prefix: string, { params }: FastifyRequest): string {
  if (!prefix.includes(':')) return prefix
  const given = params as Record<string, string>
  return prefix.replace(PARAMETER, (_part, name?: string) =>
    name === undefined ? ':' : encodeURIComponent(given[name] ?? ''),
  )
}
