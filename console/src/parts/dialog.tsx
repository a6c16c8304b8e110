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
  const isLeft = useRef(false)
  const id = useId()
  // before the next key comes, which is the dialog's then
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null
    const dialog = element.current
    dialog?.showModal()
    // the platform begins with what is first, which closes it
    dialog?.querySelector<HTMLElement>('form :is(input:not([type="radio"]), select, textarea)')?.focus()
    return () => {
      isLeft.current = true
      // nothing around it takes the focus while it is open, as it is when a button in it has ended it
      dialog?.close()
      before?.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      aria-labelledby={id}
      onClose={() => {
        if (!isLeft.current) onClose()
      }}
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
