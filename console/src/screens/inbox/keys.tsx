import { signal } from '@preact/signals'
import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'
import { focusDrawn } from '../../parts/key-focus.js'
import { lead } from '../../parts/second-press.js'
import { remember, remembered } from '../../state/kept.js'
import { texts } from '../../texts.js'
import type { InboxState } from './state.js'

const says = texts.inbox
const KEPT = 'inbox-keys'

/** Single keys get in the way of who speaks to the browser, or types with difficulty: they can be turned off. */
const areOn = signal(remembered(KEPT) !== 'off')

/** What a key asks of the open row: it has the button for it. */
const BUTTONS: Readonly<Record<string, string>> = { a: 'allow', d: 'deny', e: 'edit', x: 'choose' }

export function useKeys(state: InboxState, list: RefObject<HTMLElement | null>): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const { key } = event
      if (!areOn.value || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      const target = event.target as HTMLElement
      if (target.closest('input:not([type="checkbox"], [type="radio"]), textarea, select, dialog, nav')) return
      if (key === 'j' || key === 'k') {
        state.move(key === 'j' ? 1 : -1)
        event.preventDefault()
        focusDrawn(() => focusRow(list.current))
        return
      }
      const name = BUTTONS[key]
      // a key that is held down answers one only
      if (!name || event.repeat) return
      const button = list.current?.querySelector<HTMLElement>(`[data-open="true"] [data-key="${name}"]`)
      if (!button) return
      event.preventDefault()
      // a second press was meant for the one before: this one takes it no sooner than a press of the pointer
      if (name === 'allow' && state.isLed && getComputedStyle(button).pointerEvents === 'none') return
      button.click()
      if (name === 'allow') focusDrawn(() => focusRow(list.current))
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [state])
}

export function focusRow(list: HTMLElement | null): void {
  const head = list?.querySelector<HTMLElement>('[data-open="true"] .ask-head')
  lead(head, { preventScroll: true })
  head?.closest('li')?.scrollIntoView({ block: 'nearest' })
}

/** After what has no row of its own: to choose more, else the first that waits, else to where it says that nothing does. */
export function focusList(): void {
  const find = (place: string) => document.querySelector<HTMLElement>(place)
  const found = find('.bulk input') ?? find('.ask[data-fate="waiting"] .ask-head') ?? find('main h1')
  lead(found)
}

export function KeyHints() {
  return (
    <div class="key-hints quiet-text">
      <label>
        <input
          type="checkbox"
          checked={areOn.value}
          onChange={(event) => {
            areOn.value = event.currentTarget.checked
            remember(KEPT, areOn.value ? 'on' : 'off')
          }}
        />
        {says.keys}
      </label>
      {areOn.value &&
        Object.entries(says.keysText).map(([key, what]) => (
          <span key={key}>
            <kbd>{key}</kbd> {what}
          </span>
        ))}
    </div>
  )
}
