/** Spans, sizes, counts and money as they are shown. Pure. */

export interface SpanTexts {
  now: string
  seconds: (n: number) => string
  minutes: (n: number) => string
  hours: (n: number) => string
  days: (n: number) => string
  ago: (span: string) => string
  ahead: (span: string) => string
}

const SECOND = 1000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const DAY = 24 * HOUR

/** A span in its largest unit, rounded down: `3 min`. */
export function span(ms: number, texts: SpanTexts): string {
  if (ms < MINUTE) return texts.seconds(Math.floor(ms / SECOND))
  if (ms < HOUR) return texts.minutes(Math.floor(ms / MINUTE))
  if (ms < DAY) return texts.hours(Math.floor(ms / HOUR))
  return texts.days(Math.floor(ms / DAY))
}

/** When something was or will be, seen from `now`. Both epoch milliseconds. */
export function relative(at: number, now: number, texts: SpanTexts): string {
  const ms = now - at
  if (Math.abs(ms) < 5 * SECOND) return texts.now
  return ms > 0 ? texts.ago(span(ms, texts)) : texts.ahead(span(-ms, texts))
}

/** How long something took: `840 ms`, `3.2 s`, `4 min 10 s`. */
export function duration(ms: number): string {
  if (ms < SECOND) return `${Math.round(ms)} ms`
  // 59.96 s is a minute
  if (Math.round(ms / 100) < 600) return `${(ms / SECOND).toFixed(1)} s`
  const seconds = Math.round(ms / SECOND)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

/** `512 B`, `1.4 KB`, `3 MB`; a KB is 1024 bytes. */
export function bytes(count: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB']
  let value = count
  let unit = 0
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024
    unit++
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[unit]}`
}

/** `950`, `1.2k`, `34k`, `2.1M`. */
export function count(n: number): string {
  if (n < 1000) return String(n)
  for (const [size, suffix] of [
    [1e3, 'k'],
    [1e6, 'M'],
    [1e9, 'G'],
  ] as const) {
    const value = n / size
    if (value < 999.5 || suffix === 'G')
      return `${value < 9.95 ? Number(value.toFixed(1)) : Math.round(value)}${suffix}`
  }
  return String(n)
}

/** US dollars: `$0`, `$0.0042`, `$1.23`. */
export function money(dollars: number): string {
  if (dollars === 0) return '$0'
  if (dollars < 0.00005) return '<$0.0001'
  return dollars < 0.095 ? `$${Number(dollars.toFixed(4))}` : `$${dollars.toFixed(2)}`
}
