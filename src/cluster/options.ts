import { createSecureContext } from 'node:tls'
import type { Static } from '@sinclair/typebox'
import type { clusterSection } from '../../schemas/config-cluster.js'
import { optionError, toError } from '../errors.js'
import { ended } from '../lib/sentence.js'
import type { GatewayStorage } from '../storage/storage.js'

/** One of several processes that serve the same sessions, jobs and profiles, on one storage. */
export type ClusterOptions = Static<typeof clusterSection>

/** With its defaults. */
export interface ResolvedClusterOptions extends Omit<ClusterOptions, 'secret'> {
  /** Each signs, and each is taken. */
  secrets: readonly string[]
  leaseMs: number
  agentState: NonNullable<ClusterOptions['agentState']>
}

/** @throws SG_ERR_OPTION naming what cannot be a node */
export function resolveClusterOptions(
  { secret, ...options }: ClusterOptions,
  defaults: { leaseMs: number; agentState: ResolvedClusterOptions['agentState'] },
  storage: GatewayStorage | undefined,
): ResolvedClusterOptions {
  if (!storage?.cluster)
    throw optionError('cluster', 'needs a storage that several nodes share: createPostgresStorage, given as storage.')
  const { protocol, pathname, search, hash, username, password } = urlOf(options.url)
  if (protocol !== 'http:' && protocol !== 'https:')
    throw optionError('cluster.url', 'must be an http or https address, as http://10.0.0.5:8788.')
  if (pathname !== '/' || search || hash || username || password)
    throw optionError('cluster.url', 'must be scheme, host and port alone, as http://10.0.0.5:8788.')
  if (options.tls) assertTls(options.tls, protocol)
  return { ...defaults, ...options, url: new URL(options.url).origin, secrets: [secret].flat() }
}

function assertTls(tls: NonNullable<ClusterOptions['tls']>, protocol: string): void {
  if (protocol !== 'https:')
    throw optionError('cluster.url', 'must be an https address where cluster.tls is given, as https://10.0.0.5:8788.')
  try {
    createSecureContext(tls)
  } catch (error) {
    throw optionError(
      'cluster.tls',
      `cert, key and ca must be PEM that belongs together: ${ended(toError(error).message)}`,
    )
  }
}

const urlOf = (url: string): Pick<URL, 'protocol' | 'pathname' | 'search' | 'hash' | 'username' | 'password'> =>
  URL.canParse(url) ? new URL(url) : { protocol: '', pathname: '/', search: '', hash: '', username: '', password: '' }
