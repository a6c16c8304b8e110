import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { streamText } from 'ai'
import type { ProviderRef } from '../../../schemas/profiles.js'
import { startError, toError } from '../../errors.js'
import { DEMO_MODEL, demoModel } from './demo.js'
import { eventStreamFetch } from './event-stream.js'
import { PEERS, type Peer, PROVIDER_IDS } from './peers.js'

export type LanguageModel = Exclude<Parameters<typeof streamText>[0]['model'], string>

export interface ModelSource {
  /** The variable that the key came from, or `none`. */
  apiKeySource: string
  /** Values that `set_model` accepts; undefined when the profile declares none, and any will do. */
  models: string[] | undefined
  /** In the results of tools. */
  takesImages: boolean
  /** As `Peer.sealsThinking`. */
  sealsThinking: boolean
  open(modelId: string): LanguageModel
  /** Takes the key out of a text that a provider wrote. */
  redact(text: string): string
}

export interface ModelSourceOptions {
  env: Record<string, string | undefined>
  demoChunkDelayMs: number
  /** How the models are reached; default anyhow. */
  fetch?: typeof fetch | undefined
  /** Whoever wrote the profile is not to learn which variables are set. */
  isManaged?: boolean | undefined
  /** Of a managed profile: whether the operator lists its key. */
  mayReadKey?: boolean | undefined
}

type ProviderFactory = (settings: {
  apiKey?: string
  baseURL?: string
  fetch?: typeof fetch
}) => (modelId: string) => LanguageModel

/**
 * The models of a profile's provider, with its credentials read from the environment.
 * @throws {GatewayError} `SG_ERR_ENGINE_START` naming the variable that is not set, the package to install or the field that is missing
 */
export async function openProvider(provider: ProviderRef, options: ModelSourceOptions): Promise<ModelSource> {
  const peer = PEERS.get(provider.id)
  const keyEnv = provider.apiKeyEnv ?? peer?.keyEnv
  const apiKey = (keyEnv && options.env[keyEnv]) || undefined
  // also one that the vendor's package finds by itself
  const takesKey = keyEnv !== undefined || peer !== undefined
  if (options.isManaged && takesKey && !(options.mayReadKey && (apiKey || !keyEnv)))
    throw startError(`The key of provider ${provider.id} is none that managed profiles may use here.`)
  if (keyEnv && !apiKey) {
    throw startError(`The environment variable ${keyEnv} holds the key of provider ${provider.id}, and is not set.`)
  }
  const redact = (text: string) => (apiKey ? text.replaceAll(apiKey, '[redacted]') : text)
  return {
    apiKeySource: keyEnv ?? 'none',
    models: modelList(provider),
    takesImages: peer?.takesImages === true,
    sealsThinking: peer?.sealsThinking === true,
    open: await openModels(provider, peer, apiKey, { ...options, redact }),
    redact,
  }
}

/** The declared list, with the default model in it; undefined: any model will do. */
export function modelList({ id, model, models }: ProviderRef): string[] | undefined {
  const listed = new Set([...(model ? [model] : []), ...(models ?? [])])
  if (listed.size > 0) return [...listed]
  return id === 'demo' ? [DEMO_MODEL] : undefined
}

async function openModels(
  provider: ProviderRef,
  peer: Peer | undefined,
  apiKey: string | undefined,
  options: ModelSourceOptions & Pick<ModelSource, 'redact'>,
): Promise<ModelSource['open']> {
  const settings = {
    ...(apiKey && { apiKey }),
    ...(provider.baseUrl && { baseURL: provider.baseUrl }),
    fetch: eventStreamFetch(options.fetch ?? fetch, options.redact),
  }
  if (provider.id === 'demo') return (modelId) => demoModel(modelId, { chunkDelayMs: options.demoChunkDelayMs })
  if (provider.id === 'openai-compatible') {
    if (!provider.baseUrl) throw startError('Provider openai-compatible needs a baseUrl.')
    return createOpenAICompatible({ ...settings, name: provider.id, baseURL: provider.baseUrl, includeUsage: true })
  }
  if (!peer) {
    throw startError(`There is no provider ${provider.id}. Known here: ${PROVIDER_IDS.join(', ')}.`)
  }
  return (await importPeer(provider.id, peer))(settings)
}

async function importPeer(id: string, peer: Peer): Promise<ProviderFactory> {
  const install = `npm i ${peer.package}@^${peer.version}`
  try {
    const module = (await import(peer.package)) as Record<string, ProviderFactory | undefined>
    const factory = module[peer.factory]
    if (factory) return factory
  } catch (thrown) {
    const { code, message } = toError(thrown) as NodeJS.ErrnoException
    const missing = code === 'ERR_MODULE_NOT_FOUND' && message.includes(peer.package)
    const what = missing ? `Provider ${id} needs a package that is not installed` : `${peer.package} failed to load`
    throw startError(`${what}. Run: ${install}`, thrown)
  }
  throw startError(`The installed ${peer.package} does not fit. Run: ${install}`)
}
