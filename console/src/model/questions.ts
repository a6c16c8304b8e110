import type { PermissionRequest } from '../../../client/index.js'

export interface Question {
  question: string
  header?: string
  options: { label: string; description?: string }[]
  multiSelect: boolean
}

/** The questions of a request; undefined when it is none, or does not say them in the shape that they have. */
export function questionsOf({ toolName, input }: PermissionRequest): Question[] | undefined {
  const { questions } = input as { questions?: unknown }
  if (toolName !== 'AskUserQuestion' || !Array.isArray(questions) || questions.length === 0 || questions.length > 50)
    return undefined
  const shaped = questions.flatMap((given): Question[] => {
    const { question, header, options, multiSelect } = (given ?? {}) as Record<string, unknown>
    if (typeof question !== 'string') return []
    const choices = (Array.isArray(options) ? options.slice(0, 200) : []).flatMap((option) => {
      const { label, description } = (option ?? {}) as Record<string, unknown>
      return typeof label === 'string' ? [{ label, ...(typeof description === 'string' && { description }) }] : []
    })
    return [
      { question, ...(typeof header === 'string' && { header }), options: choices, multiSelect: multiSelect === true },
    ]
  })
  return shaped.length === questions.length ? shaped : undefined
}
