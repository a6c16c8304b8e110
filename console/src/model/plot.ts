/** Where the bars and the lines of a plot lie. Pure. */

/** Round marks from 0 to at least `max`, at most four steps: 0, 2, 4 … of 1, 2 or 5 times a power of ten. */
export function ticksTo(max: number): number[] {
  if (!(max > 0) || !Number.isFinite(max)) return [0, 1]
  const rough = max / 4
  const power = 10 ** Math.floor(Math.log10(rough))
  const step = ([1, 2, 5, 10].find((size) => size * power >= rough * (1 - 1e-9)) ?? 10) * power
  const steps = Math.ceil(max / step - 1e-9)
  // products, as sums of tenths drift
  return Array.from({ length: steps + 1 }, (_, at) => Number((at * step).toPrecision(12)))
}

export interface Bar {
  x: number
  width: number
  /** From the bottom up, one of each series that has something. */
  parts: { series: number; y: number; height: number }[]
}

/**
 * Stacked bars in a box, whose y grows downwards.
 * @param stacks of each bar, the value of each series
 * @param top the value at the upper edge
 */
export function stackedBars(stacks: readonly (readonly number[])[], top: number, width: number, height: number): Bar[] {
  const place = width / Math.max(stacks.length, 1)
  // hairlines between the bars while there is room for them
  const gap = place > 8 ? Math.min(place * 0.25, 6) : place > 3 ? 1 : 0
  return stacks.map((values, at) => {
    let base = height
    const parts = values.flatMap((value, series) => {
      const size = top > 0 ? (Math.max(value, 0) / top) * height : 0
      if (size === 0) return []
      // what there was a little of is seen
      const shown = Math.max(size, 0.75)
      base -= shown
      return [{ series, y: base, height: shown }]
    })
    return { x: at * place + gap / 2, width: place - gap, parts }
  })
}

/** Which of `count` places have a label, when there is room for `most`: evenly, the last one among them. */
export function labelled(count: number, most: number): number[] {
  if (count === 0) return []
  const step = Math.max(1, Math.ceil(count / Math.max(most, 1)))
  const places: number[] = []
  for (let at = count - 1; at >= 0; at -= step) places.unshift(at)
  return places
}
