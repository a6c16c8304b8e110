import type { SessionEvent, SessionEventOf } from '../../schemas/events.js'
import type { JobProgress } from '../../schemas/jobs.js'
import { ASK_USER_QUESTION, type PermissionRequest } from '../../schemas/permissions.js'
import { oneLine } from '../lib/one-line.js'

/** What an event of its session means for a job's observers; `undefined`: nothing. */
export function progressOf(event: SessionEvent): JobProgress | undefined {
  switch (event.type) {
    case 'assistant_message':
      return event.replay ? undefined : ofMessage(event)
    case 'permission_requested':
      return { kind: 'permission_requested', preview: previewOfRequest(event.request), request: event.request }
    case 'permission_resolved':
      return { kind: 'permission_resolved', preview: oneLine(`${event.behavior} (${event.resolvedBy})`) }
    default:
      return undefined
  }
}

/** One line for a person who is to decide; what the tool would be given stays in the request. */
export function previewOfRequest({ toolName, title, input }: PermissionRequest): string {
  const question = toolName === ASK_USER_QUESTION ? firstQuestion(input) : undefined
  // an engine's title may well say nothing
  return oneLine(title ?? '') || oneLine(question ?? '') || oneLine(`${toolName} asks to run`)
}

function firstQuestion({ questions }: Record<string, unknown>): string | undefined {
  const question = Array.isArray(questions) ? (questions[0] as { question?: unknown })?.question : undefined
  return typeof question === 'string' ? question : undefined
}

/** A message that says something is told by what it says, else by the first tool it uses; one that only thinks is not told. */
function ofMessage({ message: { content } }: SessionEventOf<'assistant_message'>): JobProgress | undefined {
  const preview = oneLine(textOf(content))
  if (preview) return { kind: 'assistant_text', preview }
  if (typeof content === 'string') return undefined
  const tool = content.find((block) => block.type === 'tool_use') as { name: string } | undefined
  return tool && { kind: 'tool_use', preview: oneLine(`Uses ${tool.name}`) }
}

const textOf = (content: SessionEventOf<'assistant_message'>['message']['content']): string =>
  typeof content === 'string'
    ? content
    : content.map((block) => (block.type === 'text' ? (block as { text: string }).text : '')).join(' ')
