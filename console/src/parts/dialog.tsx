import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { texts } from '../texts.js'
import { Icon } from './icon.js'

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
  const id = useId()
  // before the next key comes, which is the dialog's then
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null
    element.current?.showModal()
    // the platform begins with what is first, which closes it
    element.current?.querySelector<HTMLElement>('form :is(input:not([type="radio"]), select, textarea)')?.focus()
    return () => before?.focus()
  }, [])
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      onClose={onClose}
      onKeyDown={(event) => {
        // a key that is still held down has opened it
        if (event.repeat && event.key === 'Enter' && !(event.target instanceof HTMLTextAreaElement))
          event.preventDefault()
      }}
    >
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="bare" aria-label={texts.shell.close} onClick={() => element.current?.close()}>
          <Icon name="close" />
        </button>
      </header>
      {children}
    </dialog>
  )
}
