import { useSignal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { ResolvePermissionRequest } from '../../../../client/index.js'
import { draftOf, noteDraft } from '../../state/drafts.js'
import { texts } from '../../texts.js'
import { isOfComposing } from '../composing.js'
import { Field } from '../field.js'
import { lead } from '../second-press.js'
import { Settled } from './writing.js'

const says = texts.answer

/** Why not, which the agent is told. Enter sends it; Shift and Enter begins a line. */
export function Deny({
  requestId,
  onDeny,
  onCancel,
  label = says.deny,
  waits = true,
}: {
  /** Undefined where several are denied at once. */
  requestId?: string
  onDeny: (answer: ResolvePermissionRequest) => void
  onCancel: () => void
  label?: string
  /** Whether it can be answered still. What is written stays, and so does the focus: the next letters are meant for it. */
  waits?: boolean
}) {
  const input = useRef<HTMLTextAreaElement>(null)
  const before = requestId === undefined ? undefined : draftOf(requestId).denial
  const interrupts = useSignal(before?.interrupt ?? false)
  // before the next key comes: what is typed at once is the reason, and answers nothing
  useLayoutEffect(() => lead(input.current), [])
  /** What is written so far, which is there again for whoever looks elsewhere before it is sent. */
  const written = () => {
    const message = input.current?.value.trim()
    const denial = {
      behavior: 'deny' as const,
      ...(message && { message }),
      ...(interrupts.value && { interrupt: true }),
    }
    if (requestId !== undefined) noteDraft(requestId, { denial })
    return denial
  }
  const deny = (): void => {
    if (waits) onDeny(written())
  }
  return (
    <form
      class="form deny"
      onSubmit={(event) => {
        event.preventDefault()
        deny()
      }}
      onKeyDown={(event) => {
        // what is being composed is given up by it first
        if (event.key !== 'Escape' || isOfComposing(event)) return
        event.preventDefault()
        onCancel()
      }}
    >
      {!waits && <Settled />}
      <Field label={says.reason} hint={says.reasonHint}>
        {(given) => (
          <textarea
            {...given}
            ref={input}
            rows={2}
            readOnly={!waits}
            defaultValue={before?.message}
            dir="auto"
            onInput={written}
            onKeyDown={(event) => {
              if (event.key !== 'Enter' || event.shiftKey || isOfComposing(event)) return
              event.preventDefault()
              // a key that is still held down has opened this
              if (!event.repeat) deny()
            }}
          />
        )}
      </Field>
      <div class="form-row unhurried">
        {waits && (
          <button type="submit" class="danger">
            {label}
          </button>
        )}
        <button type="button" class="quiet" onClick={onCancel}>
          {waits ? texts.shell.cancel : texts.shell.close}
        </button>
        {waits && (
          <label class="tick">
            <input
              type="checkbox"
              checked={interrupts.value}
              onChange={(event) => {
                interrupts.value = event.currentTarget.checked
                written()
              }}
            />
            {says.interrupt}
          </label>
        )}
      </div>
    </form>
  )
}

/** Gives the focus back to the button in whose place the form was, when that was given up. @returns for what the button is in */
export function useFocusBack(isOpen: boolean): RefObject<HTMLDivElement | null> {
  const buttons = useRef<HTMLDivElement>(null)
  const wasOpen = useRef(isOpen)
  useLayoutEffect(() => {
    if (wasOpen.current && !isOpen) lead(buttons.current?.querySelector<HTMLElement>('[data-key="deny"]'))
    wasOpen.current = isOpen
  }, [isOpen])
  return buttons
}
