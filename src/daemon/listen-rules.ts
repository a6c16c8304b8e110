import { once } from 'node:events'
import { createServer } from 'node:net'
import ipaddr from 'ipaddr.js'
import { listenHostProblem } from '../lib/web-names.js'
import type { ConfigProblem } from './config-problem.js'
import type { EffectiveConfig } from './load-config.js'

/** Whether only this machine can reach a server that listens on `host`. A name other than `localhost` counts as reachable. */
export function isLoopbackHost(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  const bare = host.replace(/^\[(.*)\]$/, '$1')
  return ipaddr.isValid(bare) && ipaddr.process(bare).range() === 'loopback'
}

/**
 * What keeps the gateway from listening where it was told to: it lets nobody in, or everybody.
 * @param authenticates whether `auth` or a hook decides who is let in
 */
export function listenProblems(
  { allowUnauthenticated, listen }: Pick<EffectiveConfig, 'allowUnauthenticated' | 'listen'>,
  authenticates: boolean,
): ConfigProblem[] {
  if (authenticates) return []
  if (allowUnauthenticated !== true)
    return [
      {
        path: '',
        message:
          'nobody could be let in: add auth.tokens (`session-gateway init` shows how), a hook that exports authenticate, or, to try it ' +
          'on this machine only, "allowUnauthenticated": true',
      },
    ]
  if (isLoopbackHost(listen.host)) return []
  return [
    {
      path: 'allowUnauthenticated',
      message:
        `without authentication the gateway listens on loopback only, and ${listen.host} can be reached from other machines; ` +
        'add auth.tokens and remove allowUnauthenticated, or listen on 127.0.0.1',
    },
  ]
}

/** Why a server cannot listen on an address, when its port is not why. */
export const NO_SUCH_ADDRESS = 'this machine has no such address'
const LACKS_ADDRESS: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'])
export const lacksAddress = ({ code = '' }: NodeJS.ErrnoException): boolean => LACKS_ADDRESS.has(code)

/** Addresses to listen on that this machine does not have: tried with any port, as the one that is meant may be in use, by the gateway itself. */
export async function addressProblems({ listen, cluster }: Pick<EffectiveConfig, 'listen' | 'cluster'>) {
  const places: [path: string, host: string][] = [
    ['listen.host', listen.host],
    ...(cluster ? [['cluster.listen.host', cluster.listen.host] as [string, string]] : []),
  ]
  const problems: ConfigProblem[] = []
  for (const [path, host] of places)
    if (!listenHostProblem(host) && !(await isOfThisMachine(host)))
      problems.push({ path, message: `${NO_SUCH_ADDRESS}: ${host}` })
  return problems
}

async function isOfThisMachine(host: string): Promise<boolean> {
  const server = createServer((socket) => socket.destroy())
  try {
    await once(server.listen(0, host), 'listening')
    return true
  } catch (error) {
    return !lacksAddress(error as NodeJS.ErrnoException)
  } finally {
    server.close()
  }
}
