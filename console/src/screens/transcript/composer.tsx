import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { isOfComposing } from '../../parts/composing.js'
import { Icon } from '../../parts/icon.js'
import { hasKeyFocus } from '../../parts/key-focus.js'
import { Failure } from '../../parts/notice.js'
import { lead } from '../../parts/second-press.js'
import { keep, keptAs } from '../../state/kept.js'
import { texts } from '../../texts.js'
import type { TranscriptState } from './state.js'

const says = texts.transcript.composer
/** Under which what was begun in a session is kept. */
const draftIn = (sessionId: string): string => `message.${sessionId}`
/** What was said in any session, for as long as the page is there. */
const history: string[] = []
const MAX_HISTORY = 100

const isPhone = matchMedia('(pointer: coarse)')

/** What to say next. Enter sends, Shift+Enter begins a line; on a phone Enter is a line. The arrow keys go through what was said. */
export function Composer({
  state,
  isRemoved,
  onSent,
}: {
  state: TranscriptState
  /** Of a session that is not there only what was being written in it is shown. */
  isRemoved: boolean
  onSent: () => void
}) {
  const text = useSignal(keptAs<string>(draftIn(state.id)) ?? '')
  const place = useSignal(history.length)
  /** What was being written when somebody began to look at what was said. */
  const begun = useRef('')
  const error = useSignal<unknown>(undefined)
  const area = useRef<HTMLTextAreaElement>(null)
  /** What takes the place of the form. */
  const last = useRef<HTMLParagraphElement>(null)
  const status = state.status.value
  const isOver = isRemoved || status === 'closed' || status === 'failed'
  const isParked = status === 'parked'
  const isBusy = status === 'running' || status === 'awaiting_approval' || status === 'starting'

  useEffect(() => {
    const element = area.current
    if (!element) return
    element.style.height = 'auto'
    element.style.height = `${Math.min(element.scrollHeight + 2, innerHeight * 0.4)}px`
  }, [text.value])

  const put = (value: string): void => {
    text.value = value
    keep(draftIn(state.id), value || undefined)
  }
  const send = (): void => {
    const said = text.value.trim()
    if (!said || isOver || isParked) return
    history.push(said)
    if (history.length > MAX_HISTORY) history.shift()
    place.value = history.length
    put('')
    void state.outgoing.send(said)
    onSent()
  }
  const interrupt = async (): Promise<void> => {
    error.value = undefined
    try {
      await state.handle.interrupt()
    } catch (failure) {
      error.value = failure
    }
  }
  const recall = (step: number): boolean => {
    const next = place.value + step
    if (next < 0 || next > history.length) return false
    if (place.value === history.length) begun.current = text.value
    place.value = next
    put(history[next] ?? begun.current)
    return true
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    const element = area.current
    if (isOfComposing(event) || !element || isParked || isOver) return
    const isMod = event.ctrlKey || event.metaKey
    if (event.key === 'Enter' && !event.shiftKey && (isMod || !isPhone.matches)) {
      event.preventDefault()
      // a key that is still held down has answered something: the focus came here meanwhile
      if (!event.repeat) send()
    } else if (event.key === 'ArrowUp' && !text.value.slice(0, element.selectionEnd).includes('\n')) {
      if (recall(-1)) event.preventDefault()
    } else if (event.key === 'ArrowDown' && !text.value.slice(element.selectionStart).includes('\n')) {
      if (recall(1)) event.preventDefault()
    } else if (event.key === 'Escape' && isBusy && !text.value) void interrupt()
  }
  const over = isOver && says.over[isRemoved ? 'removed' : status === 'failed' ? 'failed' : 'closed']
  // what somebody was writing when it ended is theirs still
  const isGone = over && !text.value
  const hadFocus = area.current?.form?.contains(document.activeElement)
  useEffect(() => {
    if (isGone && hadFocus) lead(last.current)
  }, [isGone])
  const hadKeyFocus = hadFocus && hasKeyFocus()
  useLayoutEffect(() => {
    // what interrupts goes with what was under way; a finger that has pressed it asks for no keyboard
    if (hadKeyFocus && document.activeElement === document.body) lead(area.current)
  }, [isBusy || isParked])
  const hadWords = useRef(false)
  hadWords.current ||= isRemoved && !isGone
  if (isGone && isRemoved && !hadWords.current) return null
  if (isGone)
    return (
      <p ref={last} class="composer quiet-text" tabIndex={-1}>
        {over}
      </p>
    )
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault()
        send()
      }}
    >
      {over ? (
        <p class="quiet-text" role="status">
          {over} {says.notSent}
        </p>
      ) : (
        error.value !== undefined && <Failure error={error.value} retry={() => void interrupt()} />
      )}
      <div class="composer-row">
        <textarea
          ref={area}
          rows={1}
          dir="auto"
          aria-label={says.label}
          placeholder={isParked ? says.whileParked : isBusy ? says.whileBusy : says.placeholder}
          value={text.value}
          // not disabled, which takes no focus: who answers by keys goes on here, while it wakes
          readOnly={isParked || isOver}
          onInput={(event) => put(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        {over ? (
          <button type="button" onClick={() => put('')}>
            {texts.shell.dismiss}
          </button>
        ) : (
          <>
            {(isBusy || isParked) && (
              <button
                type="button"
                class="danger"
                aria-label={says.interrupt}
                title={says.interruptHint}
                onClick={() => void interrupt()}
              >
                <Icon name="stop" />
                <span class="wide">{says.interrupt}</span>
              </button>
            )}
            <button
              type="submit"
              class="primary"
              disabled={isParked || !text.value.trim()}
              aria-label={isBusy ? says.queue : says.send}
            >
              <Icon name="send" />
              <span class="wide">{isBusy ? says.queue : says.send}</span>
            </button>
          </>
        )}
      </div>
    </form>
  )
}
