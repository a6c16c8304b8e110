import type { ResolvePermissionRequest } from '../../../client/index.js'
import type { Choice } from '../model/choices.js'
import type { Values } from '../model/input-form.js'
import { keep, keptAs, keptUntilLeft } from './kept.js'

export interface Editing {
  way: 'form' | 'json'
  values: Values
  text: string
}

/** What a person wrote in answer to a request. */
export interface Draft {
  denial?: Extract<ResolvePermissionRequest, { behavior: 'deny' }> | undefined
  /** The input of the tool, as it was edited. */
  input?: Record<string, unknown> | undefined
  /** The form, or the text, in which it is being edited. */
  editing?: Editing | undefined
  choices?: readonly Choice[] | undefined
}

/** What of it is there again after a reload; not the input of the tool, which may be as long as a file. */
type Kept = Pick<Draft, 'denial' | 'choices'>

/** Under which what was written is kept, by request. */
const KEPT = 'answers'
const MAX_KEPT = 20
const drafts = keptUntilLeft<Draft>()

/**
 * Of the last few requests: when somebody looks elsewhere meanwhile, or an answer is not taken, its words are there again. Those of a
 * person's own also after the page was loaded anew, as a phone does with one that is not looked at.
 */
export function draftOf(requestId: string): Readonly<Draft> {
  const draft = drafts.get(requestId) ?? keptAs<Record<string, Kept>>(KEPT)?.[requestId] ?? {}
  drafts.delete(requestId)
  drafts.set(requestId, draft)
  if (drafts.size > MAX_KEPT) drafts.delete(drafts.keys().next().value!)
  return draft
}

/** Keeps what was written so far. */
export function noteDraft(requestId: string, written: Draft): void {
  const draft = { ...draftOf(requestId), ...written }
  drafts.set(requestId, draft)
  const { denial, choices } = draft
  if (written.denial || written.choices) keepOf(requestId, { denial, choices })
}

/** Its answer was taken. */
export function forgetDraft(requestId: string): void {
  drafts.delete(requestId)
  keepOf(requestId, undefined)
}

function keepOf(requestId: string, kept: Kept | undefined): void {
  const { [requestId]: before, ...others } = keptAs<Record<string, Kept>>(KEPT) ?? {}
  if (!before && !kept) return
  const all = [...Object.entries(others), ...(kept ? [[requestId, kept] as const] : [])].slice(-MAX_KEPT)
  keep(KEPT, all.length > 0 ? Object.fromEntries(all) : undefined)
}
