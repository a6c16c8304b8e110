import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { UsageReport } from '../../../client/index.js'
import { client } from '../api.js'
import { count, duration, money } from '../model/format.js'
import { averageWaitMs, DAYS, dayOf, daysBetween, filled, lastDays, tokensOf, totalOf } from '../model/usage.js'
import { MEASURES, type Measure } from '../model/usage-measures.js'
import { Empty, Reading } from '../parts/notice.js'
import { Page } from '../parts/page.js'
import { Segments } from '../parts/segments.js'
import { go, route } from '../route.js'
import { now } from '../state/clock.js'
import { Rereading } from '../state/reread.js'
import '../styles/usage.css'
import { texts } from '../texts.js'
import { Download } from './usage/download.js'
import { GROUPS, GroupTable } from './usage/groups.js'
import { DayPlot } from './usage/plot.js'
import { RangeChooser } from './usage/range.js'

const says = texts.usage
const DEFAULT_DAYS = 30
/** Usage moves with every turn; it is not read as often. */
const GAP_MS = 3_000

type Reports = Record<'day' | (typeof GROUPS)[number], UsageReport>

/** What the address says, else the last 30 days; `days` are the last ones whenever it is. */
function rangeOf(query: URLSearchParams, today: string): { from: string; to: string } {
  const from = query.get('from')
  const to = query.get('to')
  if (from && to && daysBetween(from, to).length > 0) return { from, to }
  const days = Number(query.get('days'))
  return lastDays(DAYS.find((known) => known === days) ?? DEFAULT_DAYS, Date.parse(today))
}

/** What was used, by day and by whom. */
export function screen() {
  const today = useComputed(() => dayOf(now.value)).value
  const { from, to } = rangeOf(route.value.query, today)
  const reports = useSignal<Reports | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  const measure = useSignal<Measure>('tokens')

  const reading = useMemo(
    () =>
      new Rereading(
        async (signal) => {
          const read = (by: string) => client.usage.get({ from, to, by, signal })
          try {
            const [day, ...rest] = await Promise.all([read('day'), ...GROUPS.map(read)])
            signal.throwIfAborted()
            const byGroup = Object.fromEntries(GROUPS.map((group, at) => [group, rest[at]!]))
            reports.value = { day, ...byGroup } as Reports
            error.value = undefined
          } catch (failure) {
            // another range is looked at by now
            if (!signal.aborted) error.value = failure
          }
        },
        { gapMs: GAP_MS },
      ),
    [from, to],
  )
  useEffect(() => {
    // of another range they would be taken for what was used in this one
    reports.value = undefined
    error.value = undefined
    return reading.follow()
  }, [reading])

  const all = reports.value
  const days = all ? filled(all.day.rows, from, to) : []
  const total = totalOf(days)
  const wait = averageWaitMs(total)
  return (
    <Page
      title={says.title}
      actions={
        <>
          <RangeChooser {...{ from, to, today }} onChange={(query) => go(`#/usage?${new URLSearchParams(query)}`)} />
          <Download from={from} to={to} />
        </>
      }
    >
      <Reading error={error.value} isLoaded={all !== undefined} retry={() => reading.again()} />
      {all && (
        <>
          <dl class="totals">
            <Total name={says.cost} value={total.costUsd === undefined ? says.costUnknown : money(total.costUsd)} />
            <Total name={says.tokens} value={count(tokensOf(total))} />
            <Total
              name={says.turns}
              value={count(total.turns)}
              more={total.turnsFailed > 0 ? `${count(total.turnsFailed)} ${says.failed}` : undefined}
            />
            <Total
              name={says.approvals}
              value={count(total.approvalsAsked)}
              more={
                total.approvalsAsked > 0 ? says.ofAsked(total.approvalsAnswered, total.approvalsExpired) : undefined
              }
            />
            {wait !== undefined && (
              <Total
                name={says.waited}
                value={`${duration(wait)} ${says.average}`}
                more={`${says.longest} ${duration(total.approvalWaitMaxMs)}`}
              />
            )}
            {total.jobs > 0 && <Total name={says.jobs} value={count(total.jobs)} />}
          </dl>
          {total.turns + total.approvalsAsked === 0 ? (
            <Empty>{says.nothing}</Empty>
          ) : (
            <>
              <div class="usage-head">
                <h2>{says.byDay}</h2>
                <Segments
                  legend={says.measure}
                  options={MEASURES.map((one) => [one, says.measures[one]] as const)}
                  value={measure.value}
                  onChange={(one) => {
                    measure.value = one
                  }}
                />
              </div>
              <DayPlot rows={days} measure={measure.value} from={from} to={to} />
              <div class="usage-groups">
                {GROUPS.map((group) => (
                  <GroupTable key={group} group={group} rows={all[group].rows} measure={measure.value} />
                ))}
              </div>
            </>
          )}
          <p class="quiet-text">{says.days}</p>
        </>
      )}
    </Page>
  )
}

const Total = ({ name, value, more }: { name: string; value: string; more?: string | undefined }) => (
  <div>
    <dt>{name}</dt>
    <dd>
      {value}
      {more && <span class="quiet-text">{more}</span>}
    </dd>
  </div>
)
