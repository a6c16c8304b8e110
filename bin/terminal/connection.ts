import { type Client, createClient } from '../../client/index.js'
import { CommandFailure, EXIT } from './exit.js'
import { readLogin } from './login-file.js'

export interface ConnectionOptions {
  url?: string
  token?: string
}

export const DEFAULT_URL = 'http://127.0.0.1:8787/v1'

/** What is no printable character of Latin-1. */
const UNSENDABLE = /[^\t\x20-\x7e\x80-\xff]/

/** A gateway's address with its base path, which is `/v1` when none is named. */
export function gatewayUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol))
    throw new CommandFailure(`${text} is no address of a gateway. One looks like ${DEFAULT_URL}.`, EXIT.usage)
  if (url.username || url.password)
    throw new CommandFailure('Name the token with --token, not in the address.', EXIT.usage)
  const path = url.pathname.replace(/\/+$/, '')
  return `${url.origin}${path || '/v1'}`
}

/** Flags win over the environment, which wins over what `login` has kept. A kept token goes to the gateway that it is for alone. */
export function connectionOf({ url, token }: ConnectionOptions): { url: string; token: string | undefined } {
  const named = url ?? (process.env.SESSION_GATEWAY_URL || undefined)
  const given = token ?? (process.env.SESSION_GATEWAY_TOKEN || undefined)
  const login = named !== undefined && given !== undefined ? undefined : readLogin()
  const address = gatewayUrl(named ?? login?.url ?? DEFAULT_URL)
  return { url: address, token: given ?? (login && gatewayUrl(login.url) === address ? login.token : undefined) }
}

export const connect = (options: ConnectionOptions): Client => clientOf(connectionOf(options))

export function clientOf({ url, token }: { url: string; token?: string | undefined }): Client {
  if (token && UNSENDABLE.test(token.trim()))
    throw new CommandFailure(
      'The token has characters in it that no header can carry: was it copied whole?',
      EXIT.usage,
    )
  return createClient({ baseUrl: url, ...(token && { token }) })
}
