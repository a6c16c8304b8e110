import { computed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { relative } from '../model/format.js'
import { now } from '../state/clock.js'
import { texts } from '../texts.js'

const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })

/** A moment, relative to now, with the exact one on hover. @param at epoch milliseconds */
export function Time({ at, class: name }: { at: number; class?: string }) {
  // as the seconds go by, only what then reads otherwise is drawn again
  const text = useMemo(() => computed(() => relative(at, now.value, texts.time)), [at])
  const date = new Date(at)
  const isReal = !Number.isNaN(date.getTime())
  return (
    <time
      class={name}
      dateTime={isReal ? date.toISOString() : undefined}
      title={isReal ? exact.format(date) : undefined}
    >
      {text}
    </time>
  )
}
