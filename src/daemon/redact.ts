import type { TSchema } from '@sinclair/typebox'
import { type GatewayConfig, GatewayConfig as GatewayConfigSchema } from '../../schemas/config.js'
import { PEERS } from '../engines/provider/peers.js'
import { tried } from '../lib/tried.js'
import { isSecret, isSecretUrl, memberSchema, variantFor } from './config-schema.js'

export const REDACTED = '[redacted]'

/** Shorter secrets would blank out ordinary words wherever they occur in a log. */
const MIN_SECRET_LENGTH = 6

/** The configuration as it may be shown: every secret replaced, of a webhook's URL only the origin left. */
export const redactConfig = (config: GatewayConfig): unknown =>
  mapSecrets(GatewayConfigSchema, config, (secret, isUrl) => (isUrl ? redactUrl(secret) : REDACTED))

/** What must not appear in any output: the secrets of the configuration and the keys of models, which are in variables. */
export function secretsOf(config: GatewayConfig, env: NodeJS.ProcessEnv): string[] {
  const secrets = new Set<string>()
  mapSecrets(GatewayConfigSchema, config, (secret) => {
    if (!isPlace(secret)) for (const one of [secret, ...passwordsOf(secret)]) secrets.add(one)
    return secret
  })
  for (const name of keyVariables(config)) {
    const key = env[name]
    if (key) secrets.add(key)
  }
  return [...secrets].filter((secret) => secret.length >= MIN_SECRET_LENGTH)
}

/** The variables that hold keys of models: of profiles, and of those that may be made while the gateway runs. */
function keyVariables({
  profiles = [],
  managedProfiles: { apiKeyEnvs = [], endpoints = [] } = {},
}: GatewayConfig): string[] {
  const declared = profiles.map(({ provider }) => provider?.apiKeyEnv ?? PEERS.get(provider?.id ?? '')?.keyEnv)
  const listed = endpoints.map(({ apiKeyEnv }) => apiKeyEnv)
  return [...apiKeyEnvs, ...declared, ...listed].filter((name) => name !== undefined)
}

/**
 * Takes secrets out of a line of text: the given ones, and whatever has the form of a bearer token. The belt to the braces of a logger
 * that is not handed any: messages of errors may quote what they failed on.
 */
export function createCensor(secrets: readonly string[]): (text: string) => string {
  const forms = secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
  // Longest first, so that a secret which contains another one leaves nothing of itself behind.
  const literals = [...new Set(forms)].sort((a, b) => b.length - a.length).map(escapePattern)
  const pattern = new RegExp(
    [...literals, '\\bsgw_[A-Za-z0-9_-]{20,}', '(?<=\\b[Bb]earer )[\\w.~+/-]{8,}=*'].join('|'),
    'g',
  )
  return (text) => text.replace(pattern, REDACTED)
}

const escapePattern = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** The password of a URL, as it is written and as it is meant. */
export function passwordsOf(text: string): string[] {
  const { password = '' } = URL.canParse(text) ? new URL(text) : {}
  return password === '' ? [] : [password, tried(() => decodeURIComponent(password)) ?? password]
}

/** A database without a password: messages name it by just this. */
function isPlace(text: string): boolean {
  const url = /^postgres(ql)?:/i.test(text) && URL.canParse(text) ? new URL(text) : undefined
  return url !== undefined && url.password + url.search + url.hash === ''
}

function redactUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url) return REDACTED
  const bare = `${url.protocol}//${url.host}`
  return url.href === `${bare}/` ? bare : `${bare}/${REDACTED}`
}

function mapSecrets(schema: TSchema, value: unknown, map: (secret: string, isUrl: boolean) => string): unknown {
  const known = variantFor(schema, value)
  if (typeof value === 'string') return isSecret(known) ? map(value, isSecretUrl(known)) : value
  if (typeof value !== 'object' || value === null) return value
  const mapMember = (member: unknown, key?: string) => {
    const declared = memberSchema(known, key)
    return declared ? mapSecrets(declared, member, map) : member
  }
  if (Array.isArray(value)) return value.map((item) => mapMember(item))
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, mapMember(member, key)]))
}
