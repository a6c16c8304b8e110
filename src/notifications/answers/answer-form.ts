import {
  ASK_USER_QUESTION,
  type PermissionRequest,
  type ResolvePermissionRequest,
} from '../../../schemas/permissions.js'
import { invalidField } from '../../errors.js'

/** Characters of what a person writes on the page. */
export const MAX_WRITTEN = 2_000

/** One question of a request, as far as what a model wrote can be read. */
export interface Question {
  question: string
  header?: string | undefined
  options: { label: string; description?: string | undefined }[]
  multiSelect: boolean
}

/** The questions of a request that asks some; none: it is a tool that wants to run, or nothing that a form can be made of. */
export function questionsOf({ toolName, input }: PermissionRequest): Question[] {
  if (toolName !== ASK_USER_QUESTION || !Array.isArray(input.questions)) return []
  return (input.questions as unknown[]).flatMap((one) => {
    const { question, header, options, multiSelect } = (one ?? {}) as Record<string, unknown>
    if (typeof question !== 'string') return []
    return { question, header: textOf(header), options: optionsOf(options), multiSelect: multiSelect === true }
  })
}

function optionsOf(options: unknown): Question['options'] {
  if (!Array.isArray(options)) return []
  return options.flatMap((option) => {
    const { label, description } = (option ?? {}) as Record<string, unknown>
    return typeof label === 'string' ? { label, description: textOf(description) } : []
  })
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** Names of the fields for the question at `index`: the options that were chosen, and what was written beside them. */
export const fieldsOf = (index: number) => ({ chosen: `choice-${index}`, written: `text-${index}` })

/** What a person has written into a form, whatever is asked. */
export const wordsIn = (form: URLSearchParams): string[] =>
  [...form].flatMap(([name, text]) => (/^(message|text-\d+)$/.test(name) && text.trim() ? [text] : []))

/** What a form says. @throws SG_ERR_VALIDATION with the field, and a sentence that a person reads without its name */
export function answerOf(request: PermissionRequest, form: URLSearchParams): ResolvePermissionRequest {
  const behavior = single(form, 'behavior')
  if (behavior === 'deny') {
    const message = written(form, 'message')
    return { behavior, ...(message && { message }) }
  }
  if (behavior !== 'allow') throw invalidField('behavior', 'Press one of the two buttons.')
  const questions = questionsOf(request)
  if (questions.length === 0) return { behavior }
  const answers = questions.map((question, index): [string, string] => [
    question.question,
    chosenOf(question, index, form),
  ])
  return { behavior, updatedInput: { answers: Object.fromEntries(answers) } }
}

function chosenOf({ options, multiSelect }: Question, index: number, form: URLSearchParams): string {
  const fields = fieldsOf(index)
  const known = new Set(options.map(({ label }) => label))
  const chosen = form.getAll(fields.chosen)
  for (const label of chosen) if (!known.has(label)) throw invalidField(fields.chosen, 'That is none of the options.')
  if (chosen.length > 1 && !multiSelect) throw invalidField(fields.chosen, 'This question takes one option.')
  const other = written(form, fields.written)
  const said = [...chosen, ...(other ? [other] : [])]
  if (said.length === 0) throw invalidField(fields.chosen, 'Each question needs an answer.')
  return said.join(', ')
}

function written(form: URLSearchParams, field: string): string {
  const text = (single(form, field) ?? '').trim()
  if (text.length > MAX_WRITTEN) throw invalidField(field, `Write at most ${MAX_WRITTEN} characters.`)
  return text
}

/** Of a field that is given twice none is taken: which of them was meant is not known. */
function single(form: URLSearchParams, field: string): string | undefined {
  const given = form.getAll(field)
  if (given.length > 1) throw invalidField(field, 'The form says one thing twice.')
  return given[0]
}
