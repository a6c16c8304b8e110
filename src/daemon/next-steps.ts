import { shellQuoted } from '../lib/shell-word.js'
import type { EffectiveConfig } from './load-config.js'

/**
 * Two commands that show a running gateway at work: create a session, then watch it. For a POSIX shell; where tokens are needed they
 * take it from $TOKEN.
 * @param url where the gateway listens, with base path
 */
export function firstCommands(config: EffectiveConfig, url: string, authenticates: boolean): string {
  const profiles = config.profiles ?? []
  const profile = profiles.find(({ provider }) => provider?.id === 'demo') ?? profiles[0]
  const request = {
    ...(profile && { profile: profile.name }),
    cwd: config.allowedCwdRoots?.[0] ?? process.cwd(),
    prompt: 'Hello! What can you do?',
  }
  const credentials = authenticates ? ' -H "authorization: Bearer $TOKEN"' : ''
  return [
    `ID=$(curl -s ${url}/sessions${credentials} -H 'content-type: application/json' \\`,
    `  -d ${shellQuoted(JSON.stringify(request))} | sed -E 's/^\\{"id":"([^"]+)".*/\\1/')`,
    `curl -N ${url}/sessions/$ID/events${credentials} -H 'accept: text/event-stream'`,
  ].join('\n')
}

/** The text that greets a person who started the gateway in a terminal. */
export function greeting(config: EffectiveConfig, url: string, authenticates: boolean): string {
  const door = authenticates
    ? 'Callers need a token; put yours into $TOKEN.'
    : 'No authentication: everybody on this machine is let in, nobody else.'
  const commands = firstCommands(config, url, authenticates).replace(/^/gm, '  ')
  const page = config.console === false ? '' : `For people, in a browser: ${url}/console/\n`
  return `\nsession-gateway listens on ${url}\n${door}\n${page}\nCreate a session and watch it (Ctrl+C leaves; the session goes on):\n\n${commands}\n\n`
}
