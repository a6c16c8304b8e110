import { type AnyMessage, methods, type SessionUpdate } from '@agentclientprotocol/sdk'
import { type TProperties, Type } from '@sinclair/typebox'
import { isRecord } from '../../../lib/json-value.js'
import { type Checker, compileSchema } from '../../../lib/validation.js'

const Word = Type.String()
const Count = Type.Integer({ minimum: 0 })
const Anything = Type.Unknown()

const Content = Type.Union([
  Type.Object({ type: Type.Literal('text'), text: Word }),
  Type.Object({ type: Type.Union([Type.Literal('image'), Type.Literal('audio')]), data: Word, mimeType: Word }),
  Type.Object({ type: Type.Literal('resource_link'), name: Word, uri: Word }),
  Type.Object({
    type: Type.Literal('resource'),
    resource: Type.Union([Type.Object({ uri: Word, text: Word }), Type.Object({ uri: Word, blob: Word })]),
  }),
])

const kind = (update: TProperties): Checker<unknown> =>
  compileSchema(Type.Object({ sessionId: Word, update: Type.Object(update) }))

/** What the SDK cannot do without, of the updates that have a meaning here: the rest it leaves out where that is of another type. */
const KINDS = {
  user_message_chunk: kind({ content: Content }),
  agent_message_chunk: kind({ content: Content }),
  agent_thought_chunk: kind({ content: Content }),
  tool_call: kind({ toolCallId: Word, title: Word }),
  tool_call_update: kind({ toolCallId: Word }),
  plan: kind({ entries: Anything }),
  available_commands_update: kind({ availableCommands: Anything }),
  current_mode_update: kind({ currentModeId: Word }),
  config_option_update: kind({ configOptions: Anything }),
  session_info_update: kind({}),
  usage_update: kind({ used: Count, size: Count }),
} satisfies Partial<Record<SessionUpdate['sessionUpdate'], Checker<unknown>>>

const BY_NAME: ReadonlyMap<unknown, Checker<unknown>> = new Map(Object.entries(KINDS))
const OTHER = kind({ sessionUpdate: Word })

/** Of a message, or of an update by its own kind, that has another shape. */
export interface Unreadable {
  readonly type: string | undefined
  readonly problem: string
}

/** Whether a message is an update of a kind that the SDK does not know, or that has no meaning here. */
export function isOtherUpdate(message: object): boolean {
  const update = updateIn(message)
  return update !== undefined && !BY_NAME.has(update.sessionUpdate)
}

/** What is wrong with a message that asks or tells something, where it is to be passed over. */
export function wrongIn(message: object): Unreadable | undefined {
  const { method, params } = message as { method?: unknown; params?: unknown }
  if (typeof method !== 'string') return { type: undefined, problem: 'method: Expected string.' }
  if (method !== methods.client.session.update || 'id' in message) return undefined
  const sessionUpdate = updateIn(message)?.sessionUpdate
  const [first] = (BY_NAME.get(sessionUpdate) ?? OTHER).errors(params)
  const type = typeof sessionUpdate === 'string' ? sessionUpdate : method
  return first && { type, problem: `${first.path}: ${first.message}` }
}

function updateIn(message: object): { sessionUpdate?: unknown } | undefined {
  const { method, params } = message as { method?: unknown; params?: unknown }
  if (method !== methods.client.session.update || !isRecord(params)) return undefined
  return isRecord(params.update) ? params.update : undefined
}

/** JSON-RPC's own, for what has no other. */
const INTERNAL_ERROR = -32603

/** An answer as the SDK reads it: without an error where none is named, with whatever there is of one otherwise. */
export function answerIn({ id, error, result }: { id?: unknown; error?: unknown; result?: unknown }): AnyMessage {
  const answer = error == null ? { result: result ?? null } : { error: errorIn(error) }
  return { jsonrpc: '2.0', id, ...answer } as AnyMessage
}

function errorIn(told: unknown) {
  const { code, message, data } = isRecord(told) ? told : { message: told }
  return {
    code: Number.isInteger(code) ? code : INTERNAL_ERROR,
    message: typeof message === 'string' ? message : '',
    ...(data !== undefined && { data }),
  }
}
