import type { ComponentProps, RefObject } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/** Told of each one when it is first drawn and when its size changes, after the browser has laid it out. */
const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const { scrollHeight, clientHeight, scrollWidth, clientWidth } = target
    // heights are rounded
    if (scrollHeight > clientHeight + 1 || scrollWidth > clientWidth + 1) target.setAttribute('tabindex', '0')
    else if (target !== document.activeElement) target.removeAttribute('tabindex')
  }
})

/** For what may be larger than its place: it is reached by keyboard then, and no stop on the way of the Tab key otherwise. */
export function useReached<E extends HTMLElement>(): RefObject<E | null> {
  const ref = useRef<E>(null)
  useLayoutEffect(() => {
    const element = ref.current
    if (!element) return
    // what is in it may be more by now, which its size does not tell
    sizes.observe(element)
    return () => sizes.unobserve(element)
  })
  return ref
}

/** Text that may be higher than its limit. */
export const Scrolling = (given: Omit<ComponentProps<'pre'>, 'ref' | 'tabIndex'>) => (
  <pre ref={useReached<HTMLPreElement>()} {...given} />
)
