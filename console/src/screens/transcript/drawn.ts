import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { TranscriptItem } from '../../../../client/index.js'
import { type Drawn, grown, SLICE } from '../../model/drawn-rows.js'

/**
 * The rows that are drawn: not all that come at once, but a slice with each frame, so that scrolling goes on between them.
 *
 * @param seq what is looked for; default: the end
 */
export function useDrawn(
  rows: readonly TranscriptItem[],
  seq: number | undefined,
): { drawn: readonly TranscriptItem[]; isWhole: boolean; isNearlyWhole: boolean; atFirst: boolean } {
  const tick = useSignal(0)
  const known = useRef<Drawn | undefined>(undefined)
  const { first, end, drawn } = useMemo(() => grown(rows, known.current, seq), [rows, seq, tick.value])
  known.current = drawn
  const isWhole = end - first === rows.length
  useEffect(() => {
    if (isWhole) return
    const next = (): void => {
      tick.value++
    }
    if (document.hidden) {
      const timer = setTimeout(next)
      return () => clearTimeout(timer)
    }
    const frame = requestAnimationFrame(next)
    return () => cancelAnimationFrame(frame)
  })
  return {
    drawn: useMemo(() => rows.slice(first, end), [rows, first, end]),
    isWhole,
    isNearlyWhole: rows.length - (end - first) <= SLICE,
    atFirst: first === 0,
  }
}
