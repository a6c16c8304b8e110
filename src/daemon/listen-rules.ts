import ipaddr from 'ipaddr.js'
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
