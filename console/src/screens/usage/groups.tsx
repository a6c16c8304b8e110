import { count, duration, money } from '../../model/format.js'
import { averageWaitMs, tokensOf, type UsageRow } from '../../model/usage.js'
import { type Measure, valueOfMeasure } from '../../model/usage-measures.js'
import { Scrolls } from '../../parts/scrolls.js'
import { Line } from '../../parts/untrusted.js'
import { texts } from '../../texts.js'

const says = texts.usage

export const GROUPS = ['profile', 'agent', 'person'] as const

/** Who used it: one row each, the most first. */
export function GroupTable({
  group,
  rows,
  measure,
}: {
  group: (typeof GROUPS)[number]
  rows: readonly UsageRow[]
  measure: Measure
}) {
  const sorted = [...rows].sort((a, b) => valueOfMeasure(measure, b) - valueOfMeasure(measure, a))
  const most = Math.max(...sorted.map((row) => valueOfMeasure(measure, row)), 0)
  const nameless = group === 'profile' ? says.noProfile : says.nobody
  return (
    <section>
      <h2>{says.groups[group]}</h2>
      <Scrolls label={says.groups[group]}>
        <table>
          <thead>
            <tr>
              <th scope="col">{says.names[group]}</th>
              <th scope="col" class="share">
                <span class="unseen">{says.share}</span>
              </th>
              <th scope="col" class="number">
                {says.tokens}
              </th>
              <th scope="col" class="number">
                {says.cost}
              </th>
              <th scope="col" class="number">
                {says.turns}
              </th>
              <th scope="col" class="number">
                {says.approvals}
              </th>
              <th scope="col" class="number">
                {says.waited}
              </th>
            </tr>
          </thead>
          <tbody>
            {sorted.map((row) => {
              const wait = averageWaitMs(row)
              const share = most > 0 ? valueOfMeasure(measure, row) / most : 0
              return (
                <tr key={row[group] ?? ''}>
                  <th scope="row">
                    <Line text={row[group] || nameless} length={60} />
                  </th>
                  <td class="share">
                    <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                      <rect class="tone-first" width={share * 100} height="8" rx="1" />
                    </svg>
                  </td>
                  <td class="number">{count(tokensOf(row))}</td>
                  <td class="number">{row.costUsd === undefined ? '–' : money(row.costUsd)}</td>
                  <td class="number">
                    {count(row.turns)}
                    {row.turnsFailed > 0 && (
                      <span class="went-badly"> {`${count(row.turnsFailed)} ${says.failed}`}</span>
                    )}
                  </td>
                  <td class="number">{count(row.approvalsAsked)}</td>
                  <td class="number">{wait === undefined ? '–' : duration(wait)}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      </Scrolls>
    </section>
  )
}
