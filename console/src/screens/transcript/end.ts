import type { RefObject } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import type { Place } from '../../parts/place.js'

/**
 * Stays at the end while what is above it comes to its height: lines do once they are near the screen. Once somebody scrolls, presses or types
 * in it, what grows is what they have opened, and stays where it is.
 *
 * @param onTouch is called when somebody does
 * @returns `hold` begins anew
 */
export function useEnd(
  scroller: RefObject<HTMLElement | null>,
  place: Place,
  isAtEnd: () => boolean,
  onTouch: () => void,
): { hold: () => void } {
  const held = useMemo(() => ({ is: true }), [])
  useEffect(() => {
    const element = scroller.current
    const lines = element?.firstElementChild
    if (!element || !lines) return
    const release = (): void => {
      held.is = false
      onTouch()
    }
    const grown = new ResizeObserver(() => {
      if (held.is && isAtEnd()) element.scrollTop = element.scrollHeight
      else place.keep(element)
    })
    grown.observe(lines)
    const touches = ['wheel', 'pointerdown', 'keydown'] as const
    for (const touch of touches) element.addEventListener(touch, release, { passive: true })
    return () => {
      grown.disconnect()
      for (const touch of touches) element.removeEventListener(touch, release)
    }
  }, [])
  return {
    hold() {
      held.is = true
    },
  }
}
