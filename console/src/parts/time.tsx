import { computed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { relative } from '../model/format.js'
import { now } from '../state/clock.js'
import { texts } from '../texts.js'

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** A moment as it is, where it is one. @param at epoch milliseconds */
export const exactly = (at: number): string | undefined =>
  Number.isNaN(new Date(at).getTime()) ? undefined : exact.format(at)

/** A moment, relative to now, with the exact one on hover. @param at epoch milliseconds */
export function Time({ at, class: name }: { at: number; class?: string }) {
  // as the seconds go by, only what then reads otherwise is drawn again
  const text = useMemo(() => computed(() => relative(at, now.value, texts.time)), [at])
  const title = exactly(at)
  return (
    <time class={name} dateTime={title && new Date(at).toISOString()} title={title}>
      {text}
    </time>
  )
}
