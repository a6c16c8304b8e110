import type { ComponentChildren } from 'preact'
import type { JobInfo } from '../../../../client/index.js'
import { COLUMNS, type Column, columnsOf } from '../../model/board.js'
import { count, money } from '../../model/format.js'
import { useKeptPlace } from '../../parts/kept-place.js'
import { More } from '../../parts/more.js'
import { Time } from '../../parts/time.js'
import { Line } from '../../parts/untrusted.js'
import { hrefTo } from '../../route.js'
import type { QueueState } from '../../state/jobs.js'
import { texts } from '../../texts.js'

const says = texts.queue

/** The jobs by how they stand, as they change. */
export function Board({ state }: { state: QueueState }) {
  const turns = state.turns.value
  const columns = columnsOf(state.jobs.value, turns)
  const stats = state.stats.value
  /** What the queue counts is more than is loaded, at times. */
  const countOf = (column: Column): number => {
    const loaded = columns[column].length
    if (column === 'running' || column === 'parked') return Math.max(loaded, stats?.[column] ?? 0)
    return column === 'queued' ? Math.max(loaded, (stats?.queued ?? 0) - columns.retrying.length) : loaded
  }
  return (
    <div class="board">
      {COLUMNS.map((column) => {
        const shown = columns[column].slice(0, state.shown.value)
        const isNext = ({ id }: JobInfo): boolean => turns.has(id)
        /** What is not loaded of those that are queued is behind what begins next, and before the newest. */
        const isBetween = column === 'queued' && turns.size > 0
        const hasMore = state.more.value.has(column) && (!isBetween || countOf(column) > columns[column].length)
        const first = isBetween && hasMore ? shown.filter(isNext) : shown
        const cards = (jobs: readonly JobInfo[]) => (
          <Cards>
            {jobs.map((job) => (
              <Card key={job.id} job={job} column={column} doing={state.doing.value.get(job.id)} />
            ))}
          </Cards>
        )
        return (
          <section key={column} class={`column column-${column}`} aria-labelledby={`column-${column}`}>
            <h2 id={`column-${column}`}>
              {says.columns[column]} <span class="quiet-text">{countOf(column) || ''}</span>
            </h2>
            {shown.length === 0 ? <p class="quiet-text column-none">{says.none[column]}</p> : cards(first)}
            {hasMore && (
              <More onMore={() => void state.loadMore(column)}>
                {column === 'done' ? says.loadEarlier : isBetween ? says.loadBetween : says.loadMore}
              </More>
            )}
            {first.length < shown.length && cards(shown.slice(first.length))}
          </section>
        )
      })}
    </div>
  )
}

const Cards = ({ children }: { children: ComponentChildren }) => (
  <ul ref={useKeptPlace<HTMLUListElement>()}>{children}</ul>
)

export const JobMark = ({ status }: { status: JobInfo['status'] }) => (
  <span class={`job-mark job-${status}`}>
    <span class="mark" aria-hidden="true" />
    {says.statuses[status]}
  </span>
)

function Card({ job, column, doing }: { job: JobInfo; column: Column; doing: string | undefined }) {
  const { usage } = job
  return (
    <li>
      <a class="job-card" href={hrefTo('queue', job.id)}>
        <Line text={job.prompt || says.noPrompt} length={140} class="job-prompt" />
        {column === 'running' && doing && <Line text={doing} length={140} class="job-doing" />}
        {job.error && (column === 'retrying' || job.status === 'failed') && (
          <Line text={job.error} length={140} class="job-error" />
        )}
        <span class="job-facts">
          {column === 'done' && <JobMark status={job.status} />}
          {job.profile && <Line text={job.profile} length={30} />}
          {job.maxAttempts > 1 && <span>{says.attempt(job.attempt, job.maxAttempts)}</span>}
          {usage.tokens > 0 && <span>{says.tokensUsed(count(usage.tokens))}</span>}
          {usage.cost > 0 && <span>{money(usage.cost)}</span>}
          {column === 'retrying' && job.nextRunAt !== undefined ? (
            <span>
              {says.nextTry} <Time at={job.nextRunAt} />
            </span>
          ) : (
            <Time at={job.finishedAt ?? job.parkedAt ?? job.startedAt ?? job.createdAt} />
          )}
        </span>
      </a>
    </li>
  )
}
