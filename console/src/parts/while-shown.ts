import { useEffect, useRef } from 'preact/hooks'

/** Ends with what is shown: whoever leaves it, as by Cancel, has given up what still waits for the gateway. */
export function useWhileShown(): AbortSignal {
  const aborter = useRef<AbortController | undefined>(undefined)
  aborter.current ??= new AbortController()
  useEffect(() => () => aborter.current?.abort(), [])
  return aborter.current.signal
}
