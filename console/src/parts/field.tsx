import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { lead } from './second-press.js'

interface FieldProps {
  label: string
  hint?: string | undefined
  /** What is wrong with it, in the server's own words. */
  error?: string | undefined
  children: (given: {
    id: string
    'aria-describedby': string | undefined
    'aria-invalid': boolean
  }) => ComponentChildren
}

/** The ids of what is said of it, for who does not see it. */
export const describedBy = (id: string, { hint, error }: Pick<FieldProps, 'hint' | 'error'>): string | undefined =>
  [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ') || undefined

/** A labelled input with its hint and its refusal, tied together for who does not see them. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': describedBy(id, { hint, error }), 'aria-invalid': error !== undefined })}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
    </div>
  )
}

/** To the first field of a dialog that was refused, once that was drawn: it may be out of sight. */
export const toRefused = (): void =>
  void requestAnimationFrame(() => lead(document.querySelector<HTMLElement>('dialog[open] [aria-invalid="true"]')))
