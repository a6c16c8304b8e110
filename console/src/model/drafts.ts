import type { ResolvePermissionRequest } from '../../../client/index.js'
import type { Choice } from './choices.js'
import type { Values } from './input-form.js'

export interface Editing {
  way: 'form' | 'json'
  values: Values
  text: string
}

/** What a person wrote in answer to a request. */
export interface Draft {
  denial?: Extract<ResolvePermissionRequest, { behavior: 'deny' }>
  /** The input of the tool, as it was edited. */
  input?: Record<string, unknown> | undefined
  /** The form, or the text, in which it is being edited. */
  editing?: Editing | undefined
  choices?: readonly Choice[]
}

const MAX_KEPT = 20
const drafts = new Map<string, Draft>()

/** Of the last few requests: when somebody looks elsewhere meanwhile, or an answer is not taken, its words are there again. */
export function draftOf(requestId: string): Draft {
  const draft = drafts.get(requestId) ?? {}
  drafts.delete(requestId)
  drafts.set(requestId, draft)
  if (drafts.size > MAX_KEPT) drafts.delete(drafts.keys().next().value!)
  return draft
}
