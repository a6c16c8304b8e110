import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { lead } from './second-press.js'

/** Shows more of what stands before it. Once all of that is there, and this is gone, whoever has pressed it goes on there. */
export function More({
  onMore,
  class: name = 'more',
  children,
}: {
  onMore: () => void
  class?: string
  children: ComponentChildren
}) {
  const element = useRef<HTMLButtonElement>(null)
  useLayoutEffect(() => {
    const button = element.current
    return () => {
      const shown = button?.previousElementSibling
      if (document.activeElement !== button || !(shown instanceof HTMLElement)) return
      if (!shown.hasAttribute('tabindex')) shown.tabIndex = -1
      lead(shown, { preventScroll: true })
    }
  }, [])
  return (
    <button ref={element} type="button" class={name} onClick={onMore}>
      {children}
    </button>
  )
}
