import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { texts } from '../texts.js'
import { Icon } from './icon.js'
import { lead } from './second-press.js'

const FIELD = 'form :is(input:not([type="radio"]), select, textarea)'

/** A modal dialog: the platform's own, which holds the focus, closes on Escape and gives the focus back. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  title: string
  onClose: () => void
  children: ComponentChildren
}) {
  const element = useRef<HTMLDialogElement>(null)
  /** What has, or had, the focus. */
  const at = useRef<Element | null>(null)
  const id = useId()
  /** The platform begins with what is first, which closes it. */
  const begin = (): void =>
    lead(element.current?.querySelector<HTMLElement>(FIELD) ?? element.current?.querySelector('button'))
  /** Whoever is told by the platform is told later, and what was opened meanwhile would be taken for this. */
  const leave = (): void => {
    if (element.current) onClose()
  }
  // before the next key comes, which is the dialog's then
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null
    element.current?.showModal()
    begin()
    return () =>
      // once it is gone: nothing around it takes the focus while it is open, as it is when a button in it has ended it
      queueMicrotask(() => {
        // Chromium gives no keys to a field that had the focus when a dialog over it went
        if (document.activeElement === before) before?.blur()
        lead(before?.isConnected ? before : document.querySelector<HTMLElement>('main h1'))
      })
  }, [])
  useLayoutEffect(() => {
    // what was pressed is gone with the step before
    if (at.current?.isConnected === false) begin()
  })
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      onCancel={(event) => {
        if (event.target !== event.currentTarget) return
        event.preventDefault()
        leave()
      }}
      onClose={leave}
      onFocusIn={(event) => {
        at.current = event.target as Element
      }}
      onKeyDown={(event) => {
        // a key that is still held down has opened it
        if (event.repeat && event.key === 'Enter' && !(event.target instanceof HTMLTextAreaElement))
          event.preventDefault()
      }}
    >
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="bare" aria-label={texts.shell.close} onClick={leave}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  )
}
