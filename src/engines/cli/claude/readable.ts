import { type TProperties, type TSchema, Type } from '@sinclair/typebox'
import { Dictionary } from '../../../../schemas/common.js'
import { TextBlock, ThinkingBlock } from '../../../../schemas/events.js'
import { isRecord } from '../../../lib/json-value.js'
import { type Checker, compileSchema } from '../../../lib/validation.js'
import type { AgentSetup } from '../launch.js'
import { Misshapen } from '../misshapen.js'
import { readAs } from '../read-as.js'
import type { SdkInitialization, SdkMessage, SdkResult } from './sdk.js'

const { Optional } = Type
const Word = Type.String()
const Words = Type.Array(Word)
/** Said as `null` as often as not at all. */
const Maybe = Optional(Type.Union([Word, Type.Null()]))
const Flag = Optional(Type.Boolean())
const Anything = Type.Object({})
/** More than a session can take: sums of so many can be told and stored. */
const Figure = Optional(Type.Number({ minimum: 0, maximum: 1e12 }))
const Parent = Type.Union([Word, Type.Null()], { default: null })

const Content = Type.Union([
  Word,
  Type.Array(
    Type.Union([
      TextBlock,
      ThinkingBlock,
      Type.Object({ type: Type.Literal('tool_use'), id: Word, name: Word }),
      Type.Object({ type: Type.Literal('tool_result'), tool_use_id: Optional(Word) }),
      Type.Object({ type: Type.String({ pattern: '^(?!(text|thinking|tool_use|tool_result)$)' }) }),
    ]),
  ),
])

const kind = <P extends TProperties>(properties: P) => {
  const schema = Type.Object(properties)
  return { schema, checker: compileSchema(schema) }
}

/** What is read of the messages that mean something here; of all others their type. */
const KINDS = {
  assistant: kind({
    ...{ uuid: Optional(Word), parent_tool_use_id: Parent },
    message: Type.Object({ content: Content, model: Maybe, stop_reason: Maybe }),
  }),
  user: kind({
    ...{ uuid: Optional(Word), parent_tool_use_id: Parent, isReplay: Flag },
    message: Type.Object({ content: Content }),
  }),
  stream_event: kind({
    parent_tool_use_id: Parent,
    event: Type.Object({
      type: Word,
      delta: Optional(
        Type.Object({ type: Maybe, text: Maybe, thinking: Maybe, partial_json: Maybe, stop_reason: Maybe }),
      ),
      usage: Optional(Anything),
      message: Optional(Type.Object({ usage: Optional(Anything) })),
    }),
  }),
  result: kind({
    ...{ subtype: Word, is_error: Type.Boolean(), duration_ms: Figure, num_turns: Figure, total_cost_usd: Figure },
    ...{ result: Optional(Word), errors: Optional(Type.Array(Type.Unknown())), terminal_reason: Maybe },
    ...{ usage: Optional(Anything), modelUsage: Optional(Dictionary(Anything)) },
    user_message_uuids: Optional(Type.Array(Type.Unknown())),
    origin: Optional(Type.Object({ kind: Word })),
  }),
  // read by the SDK, which takes for granted that they have these; what a person is asked without them nobody can be shown
  control_request: kind({
    request: Type.Union([
      Type.Object({ subtype: Type.Literal('can_use_tool'), tool_name: Word, tool_use_id: Word }),
      Type.Object({ subtype: Type.String({ pattern: '^(?!can_use_tool$)' }) }),
    ]),
  }),
  control_response: kind({ response: Anything }),
  rate_limit_event: kind({ rate_limit_info: Anything }),
  'system/init': kind({
    ...{ session_id: Word, model: Word, permissionMode: Word, apiKeySource: Maybe, claude_code_version: Maybe },
    ...{ tools: Optional(Words), slash_commands: Optional(Words), skills: Optional(Words) },
    mcp_servers: Optional(Type.Array(Type.Object({ name: Word, status: Word }))),
  }),
  'system/status': kind({ status: Maybe, permissionMode: Maybe, compact_result: Maybe, compact_error: Maybe }),
  'system/background_tasks_changed': kind({ tasks: Type.Array(Anything) }),
}
type Kind = { schema: TSchema; checker: Checker<unknown> }
const BY_NAME: ReadonlyMap<string, Kind> = new Map(Object.entries<Kind>(KINDS))

const Initialization = kind({
  commands: Optional(Type.Array(Type.Object({ name: Word, description: Maybe, argumentHint: Maybe }))),
  models: Optional(Type.Array(Type.Object({ value: Word, displayName: Maybe, description: Maybe }))),
  account: Optional(
    Type.Object({ apiKeySource: Maybe, tokenSource: Maybe, subscriptionType: Maybe, apiProvider: Maybe }),
  ),
  claude_code_version: Maybe,
  current_permission_mode: Maybe,
})

/** A message as far as it can be read: without one it is to be passed over. */
interface Reading {
  message?: SdkMessage
  /** What is wrong with it. */
  problem?: string
}

/** What of a message can be read: a member that it can do without is left out where that is of another type. */
export function readingOf(said: unknown): Reading {
  const name = nameOf(said)
  if (name === undefined) return { problem: 'type: Expected string.' }
  const known = BY_NAME.get(name)
  if (!known || known.checker.check(said)) return { message: said as SdkMessage }
  const [first] = known.checker.errors(said)
  const message = readAs(known.schema, name === 'result' ? asEnd(said as object) : said) as SdkMessage | undefined
  return { ...(message && { message }), problem: `${first?.path}: ${first?.message}` }
}

/** What an agent answers to its first request, as far as it can be read. */
export const initializationIn = (answered: unknown): SdkInitialization =>
  (readAs(Initialization.schema, answered) ?? {}) as SdkInitialization

function nameOf(said: unknown): string | undefined {
  const { type, subtype } = isRecord(said) ? said : {}
  if (type === 'system' && typeof subtype === 'string') return `system/${subtype}`
  return typeof type === 'string' ? type : undefined
}

/** However it is told, it is the end of a turn, which nothing else tells. */
function asEnd(said: { subtype?: unknown; is_error?: unknown }): Pick<SdkResult, 'subtype' | 'is_error'> {
  const { subtype, is_error } = said
  const isError = typeof is_error === 'boolean' ? is_error : subtype !== 'success'
  const how = isError ? 'error_during_execution' : 'success'
  return { ...said, subtype: typeof subtype === 'string' ? subtype : how, is_error: isError }
}

/** Reads what an agent says; what has another shape is told to the operator. */
export class Reader {
  readonly #misshapen: Misshapen

  constructor(setup: AgentSetup) {
    this.#misshapen = new Misshapen(setup)
  }

  /** @returns undefined for a message that cannot be read */
  read(said: unknown): SdkMessage | undefined {
    const { message, problem } = readingOf(said)
    if (problem !== undefined) this.#misshapen.tell(nameOf(said), problem)
    return message
  }
}
