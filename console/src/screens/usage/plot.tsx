import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { count, money } from '../../model/format.js'
import { labelled, stackedBars, ticksTo } from '../../model/plot.js'
import type { UsageRow } from '../../model/usage.js'
import { type Measure, SERIES, valueOfMeasure } from '../../model/usage-measures.js'
import { Scrolls } from '../../parts/scrolls.js'
import { texts } from '../../texts.js'

const says = texts.usage
const HEIGHT = 180
const LEFT = 46
const BOTTOM = 22
const TOP = 8
const LABEL_WIDTH = 76

/** `Mar 5`: the year is in the range. */
const short = new Intl.DateTimeFormat(undefined, { month: 'short', day: 'numeric', timeZone: 'UTC' })

/** A day after the other as stacked bars, and the same as a table. */
export function DayPlot({
  rows,
  measure,
  from,
  to,
}: {
  rows: readonly UsageRow[]
  measure: Measure
  from: string
  to: string
}) {
  const box = useRef<HTMLDivElement>(null)
  const width = useSignal(720)
  const at = useSignal<number | undefined>(undefined)
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      if (entry) width.value = Math.max(240, Math.floor(entry.contentRect.width))
    })
    observer.observe(box.current!)
    return () => observer.disconnect()
  }, [])

  const series = SERIES[measure]
  const said = measure === 'cost' ? money : count
  const stacks = rows.map((row) => series.map(({ of }) => of(row)))
  const ticks = ticksTo(Math.max(...rows.map((row) => valueOfMeasure(measure, row)), 0))
  // a part of a turn there is not
  const marks = measure === 'turns' || measure === 'approvals' ? ticks.filter(Number.isInteger) : ticks
  const top = ticks.at(-1)!
  const inner = width.value - LEFT
  const bars = stackedBars(stacks, top, inner, HEIGHT)
  const place = inner / Math.max(rows.length, 1)
  const shown = at.value === undefined ? undefined : rows[at.value]
  return (
    <figure class="plot">
      <div ref={box}>
        <svg
          role="img"
          aria-label={says.plotOf(says.measures[measure], from, to)}
          width={width.value}
          height={HEIGHT + TOP + BOTTOM}
          onPointerLeave={() => {
            at.value = undefined
          }}
        >
          <g transform={`translate(${LEFT} ${TOP})`}>
            {marks.map((tick) => {
              const y = HEIGHT - (tick / top) * HEIGHT
              return (
                <g key={tick}>
                  <line class="plot-line" x1={0} x2={inner} y1={y} y2={y} />
                  <text class="plot-label" x={-8} y={y + 4} text-anchor="end">
                    {said(tick)}
                  </text>
                </g>
              )
            })}
            {bars.map((bar, day) => (
              <g key={rows[day]!.day}>
                {bar.parts.map(({ series: one, y, height }) => (
                  <rect
                    key={one}
                    class={`tone-${series[one]!.tone}`}
                    x={bar.x}
                    y={y}
                    width={bar.width}
                    height={height}
                    data-series={series[one]!.name}
                  />
                ))}
                <rect
                  class="plot-hover"
                  data-day={rows[day]!.day}
                  x={day * place}
                  width={place}
                  height={HEIGHT}
                  onPointerEnter={() => {
                    at.value = day
                  }}
                />
              </g>
            ))}
            {labelled(rows.length, Math.floor(inner / LABEL_WIDTH)).map((day) => (
              <text
                key={day}
                class="plot-label"
                x={Math.min((day + 0.5) * place, inner - 20)}
                y={HEIGHT + 16}
                text-anchor="middle"
              >
                {short.format(Date.parse(rows[day]!.day!))}
              </text>
            ))}
          </g>
        </svg>
      </div>
      <figcaption>
        <ul class="plot-legend">
          <li class="plot-day">{shown?.day ?? says.sum}</li>
          {series.map(({ name, tone, of }) => (
            <li key={name}>
              <svg viewBox="0 0 10 10" aria-hidden="true">
                <rect class={`tone-${tone}`} width="10" height="10" rx="2" />
              </svg>
              {says.series[name]} <b>{said(shown ? of(shown) : rows.reduce((sum, row) => sum + of(row), 0))}</b>
            </li>
          ))}
        </ul>
        <details>
          <summary>{says.asTable}</summary>
          <DayTable {...{ rows, measure }} />
        </details>
      </figcaption>
    </figure>
  )
}

function DayTable({ rows, measure }: { rows: readonly UsageRow[]; measure: Measure }) {
  const series = SERIES[measure]
  const said = measure === 'cost' ? money : count
  return (
    <Scrolls label={says.tableOf(says.measures[measure])}>
      <table>
        <thead>
          <tr>
            <th scope="col">{says.day}</th>
            {series.map(({ name }) => (
              <th key={name} scope="col" class="number">
                {says.series[name]}
              </th>
            ))}
            <th scope="col" class="number">
              {says.sum}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.day}>
              <th scope="row">{row.day}</th>
              {series.map(({ name, of }) => (
                <td key={name} class="number">
                  {said(of(row))}
                </td>
              ))}
              <td class="number">{said(valueOfMeasure(measure, row))}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scrolls>
  )
}
