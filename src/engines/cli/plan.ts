import type { PlanEntry } from '../../../schemas/events.js'

const STATUSES: ReadonlyMap<unknown, PlanEntry['status']> = new Map([
  ['in_progress', 'in_progress'],
  ['completed', 'completed'],
  ['cancelled', 'completed'],
])

export const statusOf = (told: unknown): PlanEntry['status'] => STATUSES.get(told) ?? 'pending'

/** An agent's plan or todo list, in whichever words it tells it; undefined when it is none. */
export function planOf(list: unknown): PlanEntry[] | undefined {
  if (!Array.isArray(list)) return undefined
  const entries = list.map(entryOf)
  return entries.every((entry) => entry !== undefined) ? entries : undefined
}

function entryOf(told: unknown): PlanEntry | undefined {
  const { content, description, status, priority } = (told ?? {}) as Record<string, unknown>
  const text = content ?? description
  if (typeof text !== 'string') return undefined
  return {
    content: text,
    status: statusOf(status),
    ...(typeof priority === 'string' && { priority }),
  }
}

/** Names under which agents have a tool that replaces their whole todo list: `TodoWrite`, `todowrite`, `todo_write`, `write_todos`. */
const TODO_TOOL = /^(todo_?write|write_?todos)$/i

/** The todo list that a call of a tool writes; undefined when the tool writes none. */
export const planOfCall = (toolName: string, input: unknown): PlanEntry[] | undefined =>
  TODO_TOOL.test(toolName) ? planOf((input as { todos?: unknown } | undefined)?.todos) : undefined
