import type { FastifyInstance, FastifyRequest, FastifySchema, HTTPMethods } from 'fastify'
import { GatewayError, optionError } from '../src/errors.js'
import { sourceOf } from './own-place.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answers as if nothing were there, since what it needs is not configured; `Allow` does not offer it. */
    isAbsent?: boolean
    /** Stands for the paths that nothing is at: refused as such, an upgrade too. */
    isNowhere?: boolean
  }
}

const METHODS: HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE']

/**
 * What stands before the first parameter of each path. A router answers a parameter that it finds too long by itself, without a word of
 * ours; behind these stems nothing is left to it, nor below the prefix to a host that has a route for all paths.
 */
const stemsOf = (paths: Iterable<string>, prefix: string): Set<string> => {
  const stems = [...paths].filter((path) => path.includes(':')).map((path) => path.slice(0, path.indexOf(':')))
  return new Set(prefix === '' ? stems : [...stems, `${prefix}/`])
}

/**
 * One path answers 405 with `Allow` to all but some methods, where the rest of its scope is somebody else's.
 * @param offered in `Allow`; default all that it takes
 */
export function refuseOthersAt(
  scope: FastifyInstance,
  url: string,
  { methods, offered = methods, isPublic = false }: { methods: string[]; offered?: string[]; isPublic?: boolean },
): void {
  const allow = [...offered].sort().join(', ')
  const refuse = async () => {
    throw new GatewayError('SG_ERR_METHOD_NOT_ALLOWED', { allow })
  }
  // at onRequest, so that it is told before anything is said about a body
  scope.route({
    method: METHODS.filter((method) => !methods.includes(method)),
    url,
    // a document of the host's own leaves it out
    schema: { hide: true } as FastifySchema,
    config: { owner: 'any', isPublic },
    onRequest: refuse,
    handler: refuse,
  })
}

/**
 * Adds routes outside of `basePath`, at paths that the host, or another gateway in it, may have routes of its own for.
 * @throws SG_ERR_OPTION naming the option that asked for them
 */
export function addBeside(option: string, add: () => void): void {
  try {
    add()
  } catch (cause) {
    if ((cause as { code?: unknown }).code !== 'FST_ERR_DUPLICATED_ROUTE') throw cause
    const problem = `this host, or another gateway in it, has such a route already (${(cause as Error).message}). Leave the option out here, or register this gateway with a prefix of its own.`
    throw optionError(option, problem, cause)
  }
}

/**
 * A known path answers 405 with `Allow` to a method that it does not take; one that nothing is at is refused to
 * who was let in. Collects the routes of the scope from here on; `complete` is called when all are registered.
 */
export function refuseOtherMethods(scope: FastifyInstance): { complete(): void } {
  const taken = new Map<string, Set<string>>()
  /** The methods of a path that are there and not to be offered. */
  const absent = new Map<string, Set<string>>()
  /** Paths with a route that asks who it is. */
  const guarded = new Set<string>()
  const heads = new Map<string, () => void>()
  /** What is offered at the paths that match. */
  const known: [path: RegExp, allow: string][] = []
  // the router knows no further method, PROPFIND say, at any path
  const refusalOf = ({ method, url }: FastifyRequest): GatewayError => {
    const path = url.split('?', 1)[0]!
    const allow = METHODS.some((one) => one === method) ? undefined : known.find(([at]) => at.test(path))?.[1]
    return allow === undefined
      ? new GatewayError('SG_ERR_NOT_FOUND')
      : new GatewayError('SG_ERR_METHOD_NOT_ALLOWED', { allow })
  }
  // one of the scope's own, so that its hooks are met
  try {
    scope.setNotFoundHandler((request) => {
      throw refusalOf(request)
    })
  } catch (cause) {
    const problem =
      'here it covers all paths, and this host answers those that nothing is at by itself; give the gateway one, as /v1.'
    throw optionError('basePath', problem, cause)
  }
  // before anything is said about a body
  scope.addHook('onRequest', (request, _reply, done) => done(request.is404 ? refusalOf(request) : undefined))
  scope.addHook('onRoute', function (route) {
    const { path, method, config } = route
    // there for other nodes alone: whoever else asks is told nothing of it
    if (config?.forNodes) return
    const methods = taken.get(path) ?? new Set()
    for (const one of [method].flat()) methods.add(one)
    taken.set(path, methods)
    if (config?.isAbsent) absent.set(path, new Set([...(absent.get(path) ?? []), ...[method].flat()]))
    if (!config?.isPublic) guarded.add(path)
    if (method !== 'GET' || config?.socket) return
    // where the path itself is, behind the same limits and with the same refusals
    const head = { ...route, method: 'HEAD' as const, url: path.slice(this.prefix.length) }
    heads.set(path, () => this.route(head))
  })
  return {
    complete() {
      // Fastify makes them, unless the host has told it not to
      for (const [path, addHead] of heads) if (!taken.get(path)?.has('HEAD')) addHead()
      for (const stem of stemsOf(taken.keys(), scope.prefix)) {
        const refuse = async () => {
          throw new GatewayError('SG_ERR_NOT_FOUND')
        }
        const url = `${stem}*`
        // a preflight is the host's to answer: of its own routes under the prefix, and of what is nowhere it opens nothing
        const methods = stem === `${scope.prefix}/` ? METHODS.filter((method) => method !== 'OPTIONS') : METHODS
        // where the host has such a route under the prefix already, it is meant
        const method = methods.filter((method) => !scope.hasRoute({ method, url }))
        if (method.length === 0) continue
        scope.route({
          method,
          url: url.slice(scope.prefix.length),
          config: { owner: 'any', isNowhere: true },
          onRequest: refuse,
          handler: refuse,
        })
        taken.delete(url)
      }
      for (const [path, methods] of [...taken]) {
        if (methods.has('GET')) methods.add('HEAD')
        const offered = [...methods].filter((method) => !absent.get(path)?.has(method))
        const isOnePath = !/[:*]/.test(path)
        known[isOnePath ? 'unshift' : 'push']([new RegExp(`^${sourceOf(path)}$`), [...offered].sort().join(', ')])
        const url = path.slice(scope.prefix.length)
        refuseOthersAt(scope, url, { methods: [...methods], offered, isPublic: !guarded.has(path) })
      }
    },
  }
}
