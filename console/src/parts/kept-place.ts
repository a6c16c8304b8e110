import type { RefObject } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { Place } from './place.js'

/** For a list that scrolls with its page: what is read of it stays where it is when something comes above. */
export function useKeptPlace<E extends HTMLElement>(): RefObject<E | null> {
  const list = useRef<E>(null)
  const place = useMemo(() => new Place(() => list.current), [])
  useLayoutEffect(() => {
    const scroller = list.current?.closest('main')
    if (!scroller) return
    place.keep(scroller)
    place.note(scroller)
  })
  useEffect(() => {
    const scroller = document.querySelector('main')!
    const onScroll = (): void => place.note(scroller)
    scroller.addEventListener('scroll', onScroll, { passive: true })
    return () => scroller.removeEventListener('scroll', onScroll)
  }, [])
  return list
}
