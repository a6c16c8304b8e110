import { useLayoutEffect, useRef } from 'preact/hooks'

/** Ends with what is shown: whoever leaves it, as by Cancel, has given up what still waits for the gateway. */
export function useWhileShown(): AbortSignal {
  const aborter = useRef<AbortController | undefined>(undefined)
  aborter.current ??= new AbortController()
  // before anything else that waits is looked at: what ends after the next frame would be asked for once more
  useLayoutEffect(() => () => aborter.current?.abort(), [])
  return aborter.current.signal
}
