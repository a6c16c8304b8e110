import { useLayoutEffect, useRef } from 'preact/hooks'
import { texts } from '../../texts.js'

/** What somebody is in the middle of answering was settled meanwhile. */
export function Settled() {
  const notice = useRef<HTMLParagraphElement>(null)
  useLayoutEffect(() => {
    notice.current?.scrollIntoView({ block: 'nearest' })
    // it has pushed what they write out of sight where there is little room
    document.activeElement?.scrollIntoView({ block: 'nearest' })
  }, [])
  return (
    <p class="notice" role="alert" ref={notice}>
      {texts.answer.settled}
    </p>
  )
}

/** Tells whenever somebody begins to write an answer, or is done with it. */
export function useWriting(isWriting: boolean, onWriting: ((isWriting: boolean) => void) | undefined): void {
  const told = useRef(false)
  useLayoutEffect(() => {
    if (told.current !== isWriting) onWriting?.(isWriting)
    told.current = isWriting
  }, [isWriting])
}
