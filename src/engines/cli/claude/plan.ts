import type { MessageBlock, PlanEntry } from '../../../../schemas/events.js'
import { isRecord } from '../../../lib/json-value.js'
import { planOfCall, statusOf } from '../plan.js'

/** The tasks that the agent has noted, by its numbers; survives a runner. */
export type PlanState = readonly (readonly [id: string, entry: PlanEntry])[]

interface Call {
  name: string
  input: Record<string, unknown>
}

/** What is read of a block, whichever it is. */
interface Block {
  type: string
  id: string
  name: string
  input: unknown
  tool_use_id: string
  is_error: unknown
  content: unknown
}

const TASK_TOOL = /^(TaskCreate|TaskUpdate|TaskList|TodoWrite)$/
const CREATED = /^Task #(\S+) created/
const LISTED = /^#(\S+) \[(\w+)\] (.*)$/gm

/** The agent's plan, put together from the calls of its tools: older models write it whole, newer ones task by task. */
export class ClaudePlan {
  readonly #tasks: Map<string, PlanEntry>
  /** Of these tools, by id, until they are answered. */
  readonly #calls = new Map<string, Call>()

  constructor(state: PlanState = []) {
    this.#tasks = new Map(state)
  }

  /** Absent: it has none. */
  get state(): { plan?: PlanState } {
    return this.#tasks.size > 0 ? { plan: [...this.#tasks] } : {}
  }

  /** @returns the whole plan, when the message has changed it */
  read(content: string | MessageBlock[]): PlanEntry[] | undefined {
    if (typeof content === 'string') return undefined
    let changed: PlanEntry[] | undefined
    for (const block of content) {
      const { type, id, name, input, tool_use_id, is_error, content: answer } = block as unknown as Block
      if (type === 'tool_use' && TASK_TOOL.test(name))
        this.#calls.set(id, { name, input: isRecord(input) ? input : {} })
      const call = type === 'tool_result' ? this.#calls.get(tool_use_id) : undefined
      if (!call) continue
      this.#calls.delete(tool_use_id)
      if (!is_error) changed = this.#apply(call, textIn(answer)) ?? changed
    }
    return changed
  }

  #apply({ name, input }: Call, answer: string): PlanEntry[] | undefined {
    if (name === 'TodoWrite') return planOfCall(name, input)
    if (name === 'TaskCreate') {
      const id = CREATED.exec(answer)?.[1]
      if (id === undefined || typeof input.subject !== 'string') return undefined
      this.#tasks.set(id, { content: input.subject, status: 'pending' })
    } else if (name === 'TaskUpdate') {
      const id = typeof input.taskId === 'number' ? String(input.taskId) : (input.taskId as string)
      const task = this.#tasks.get(id)
      if (!task) return undefined
      if (input.status === 'deleted') this.#tasks.delete(id)
      else
        this.#tasks.set(id, {
          content: typeof input.subject === 'string' ? input.subject : task.content,
          status: input.status === undefined ? task.status : statusOf(input.status),
        })
    } else {
      this.#tasks.clear()
      for (const [, id, status, content] of answer.matchAll(LISTED))
        this.#tasks.set(id!, { content: content!, status: statusOf(status) })
    }
    return [...this.#tasks.values()]
  }
}

const textIn = (answer: unknown): string =>
  typeof answer === 'string'
    ? answer
    : Array.isArray(answer)
      ? answer.map((part) => (typeof part?.text === 'string' ? part.text : '')).join('\n')
      : ''
