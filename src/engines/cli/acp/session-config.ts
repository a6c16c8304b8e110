import type { ClientContext, SessionConfigOption } from '@agentclientprotocol/sdk'
import { startError } from '../../../errors.js'
import { isRecord } from '../../../lib/json-value.js'
import { ended } from '../../../lib/sentence.js'
import { reasonOf } from './connection.js'

/** What a session says of itself when it is opened. `models` is of an earlier protocol, which some agents still speak. */
export interface SessionAnswer {
  sessionId?: string
  modes?: { currentModeId: string } | null
  models?: {
    currentModelId: string
    availableModels: { modelId: string; name: string; description?: string | null }[]
  } | null
  configOptions?: SessionConfigOption[] | null
}

export interface ModelChoice {
  value: string
  displayName: string
  description?: string
}

/** One thing of a session that has a value and can be given another: its mode or its model. */
interface Setting {
  /** Undefined: the agent does not say, or in no word. */
  current: string | undefined
  /** What it is being set to. */
  asked?: string | undefined
  set(value: string): Promise<unknown>
}

async function change(setting: Setting, value: string): Promise<void> {
  setting.asked = value
  try {
    await setting.set(value)
    setting.current = value
  } finally {
    setting.asked = undefined
  }
}

/** The agent says that it is another one now. @returns whether it went there by itself */
function isNow(setting: Setting | undefined, value: string): boolean {
  const isNews = setting?.current !== value && setting?.asked !== value
  if (setting) setting.current = value
  return isNews
}

/** What the agent says that is chosen now, where it lets that be set as an option. */
export const chosenIn = (configOptions: SessionConfigOption[]) => ({
  mode: selectOf({ configOptions }, 'mode')?.currentValue,
  model: selectOf({ configOptions }, 'model')?.currentValue,
})

/** The mode and the model of a session, in whichever of its ways the agent lets them be set. */
export class SessionConfig {
  readonly models: ModelChoice[]
  /** What the agent chose by itself. */
  readonly defaultModel: string | undefined
  readonly #mode: Setting | undefined
  readonly #model: Setting | undefined

  /** @param chosenBefore what the agent chose by itself when the session began: one that loads it may name another one, which somebody chose */
  constructor(agent: ClientContext, sessionId: string, answer: SessionAnswer, chosenBefore?: string) {
    const option = (category: string): Setting | undefined => {
      const found = selectOf(answer, category)
      return (
        found && {
          current: wordIn(found.currentValue),
          set: (value) => agent.request('session/set_config_option', { sessionId, configId: found.id, value }),
        }
      )
    }
    const { modes, models } = answer
    const mode: Setting | null | undefined = modes && {
      current: wordIn(modes.currentModeId),
      set: (modeId) => agent.request('session/set_mode', { sessionId, modeId }),
    }
    const model: Setting | null | undefined = models && {
      current: wordIn(models.currentModelId),
      set: (modelId) => agent.request<unknown>('session/set_model', { sessionId, modelId }),
    }
    this.#mode = option('mode') ?? mode ?? undefined
    this.#model = option('model') ?? model ?? undefined
    this.models = modelsOf(answer)
    const isOffered = this.models.length === 0 || this.models.some(({ value }) => value === chosenBefore)
    this.defaultModel = (isOffered ? chosenBefore : undefined) ?? this.#model?.current
  }

  get model(): string {
    return this.#model?.current ?? ''
  }

  get mode(): string | undefined {
    return this.#mode?.current
  }

  /** The agent says that it is in another mode now. @returns whether it went there by itself */
  modeIs(id: string): boolean {
    return isNow(this.#mode, id)
  }

  /** The same of its model. */
  modelIs(id: string): boolean {
    return this.#model !== undefined && isNow(this.#model, id)
  }

  async setMode(id: string): Promise<void> {
    if (!this.#mode) throw new Error('The agent has no modes.')
    await change(this.#mode, id)
  }

  /** @param value undefined: what the agent chose by itself */
  async setModel(value: string | undefined): Promise<void> {
    const chosen = value ?? this.defaultModel
    if (!this.#model || chosen === undefined) throw new Error('The agent does not let its model be chosen.')
    try {
      await change(this.#model, chosen)
    } catch (error) {
      if (this.models.length === 0 || this.models.some((one) => one.value === chosen)) throw error
      throw new Error(
        `${ended(reasonOf(error))} The agent offers no model ${chosen}; it offers ${listed(this.models)}.`,
      )
    }
  }
}

/** @throws GatewayError when what the agent says of its modes and models cannot be read */
export function sessionConfig(...told: ConstructorParameters<typeof SessionConfig>): SessionConfig {
  try {
    return new SessionConfig(...told)
  } catch (error) {
    throw startError('What the agent says of its modes and models is not of the Agent Client Protocol.', error)
  }
}

/** Some agents offer hundreds. */
const MOST_LISTED = 20

function listed(models: readonly ModelChoice[]): string {
  const rest = models.length - MOST_LISTED
  const names = models.slice(0, MOST_LISTED).map(({ value }) => value)
  return `${names.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

/** What a client may choose of one kind. */
function selectOf({ configOptions }: SessionAnswer, category: string) {
  const found = configOptions
    ?.filter(isRecord)
    .find((one) => one.type === 'select' && (one.category ?? one.id) === category)
  return found?.type === 'select' ? found : undefined
}

function modelsOf(answer: SessionAnswer): ModelChoice[] {
  const choices =
    selectOf(answer, 'model')
      ?.options.filter(isRecord)
      .flatMap((one) => ('options' in one ? one.options : [one])) ??
    (answer.models?.availableModels ?? []).filter(isRecord).map(({ modelId, ...said }) => ({ ...said, value: modelId }))
  return choices.filter(isRecord).flatMap((told) => {
    const value = wordIn(told.value)
    const description = wordIn(told.description)
    // without that it cannot be chosen
    if (value === undefined) return []
    return { value, displayName: wordIn(told.name) ?? value, ...(description && { description }) }
  })
}

const wordIn = (told: unknown): string | undefined => (typeof told === 'string' ? told : undefined)
