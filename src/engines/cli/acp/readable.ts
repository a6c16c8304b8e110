import { type AnyMessage, methods, type SessionUpdate } from '@agentclientprotocol/sdk'
import { type TProperties, Type } from '@sinclair/typebox'
import { isRecord } from '../../../lib/json-value.js'
import { type Checker, compileSchema } from '../../../lib/validation.js'
import { readAs } from '../read-as.js'

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

/** What the SDK cannot do without of what is asked of a person: it refuses the whole of it for one option that it does not know. */
const Ask = Type.Object({
  sessionId: Word,
  toolCall: Type.Object({ toolCallId: Word }),
  options: Type.Array(
    Type.Object({
      ...{ optionId: Word, name: Word },
      kind: Type.Union(
        (['allow_once', 'allow_always', 'reject_once', 'reject_always'] as const).map((kind) => Type.Literal(kind)),
      ),
    }),
  ),
})
const asks = compileSchema(Ask)

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

/** Whether a message asks for permission. */
export const isAsk = (message: object): boolean =>
  'id' in message && (message as { method?: unknown }).method === methods.client.session.requestPermission

/** What an agent asks, as far as it can be read: what lacks more than some of its options is for the SDK to refuse. */
export function askIn<Message extends object>(message: Message): Message {
  const params = readAs(Ask, (message as { params?: unknown }).params)
  return params === undefined ? message : { ...message, params }
}

/** What is wrong with a message that asks or tells something. */
export function wrongIn(message: object): Unreadable | undefined {
  const { method, params } = message as { method?: unknown; params?: unknown }
  if (typeof method !== 'string') return { type: undefined, problem: 'method: Expected string.' }
  if (isAsk(message)) return problemOf(asks, params, method)
  if (method !== methods.client.session.update || 'id' in message) return undefined
  const sessionUpdate = updateIn(message)?.sessionUpdate
  return problemOf(
    BY_NAME.get(sessionUpdate) ?? OTHER,
    params,
    typeof sessionUpdate === 'string' ? sessionUpdate : method,
  )
}

function problemOf(checker: Checker<unknown>, params: unknown, type: string): Unreadable | undefined {
  const [first] = checker.errors(params)
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
