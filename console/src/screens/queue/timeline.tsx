import type { JobInfo, SessionInfo } from '../../../../client/index.js'
import { attemptsOf, type Lost, laidOut } from '../../model/board.js'
import { count, duration, money } from '../../model/format.js'
import { Time } from '../../parts/time.js'
import { Line } from '../../parts/untrusted.js'
import { hrefTo } from '../../route.js'
import { now } from '../../state/clock.js'
import { texts } from '../../texts.js'

const says = texts.queue

/** A job, and those of its sessions that were found. */
export interface Found {
  job: JobInfo
  sessions: readonly SessionInfo[]
  /** There are more sessions than were looked through. */
  isCut: boolean
}

/** The attempts of a job, one under the other on one line of time. */
export function Timeline({ job, sessions, isCut }: Found) {
  const { kept, lostEarlier, lostLast } = attemptsOf(job, sessions)
  return (
    <section>
      <h2>{says.attempts}</h2>
      {kept.length === 0 && !lostEarlier && !lostLast ? (
        <p class="quiet-text">{says.noAttempts}</p>
      ) : (
        <ol class="timeline">
          {lostEarlier && <LostRow {...lostEarlier} isCut={isCut} />}
          {laidOut(kept, now.value).map(
            ({ number, sessionId, status, statusDetail, from, to, left, width, cost, tokens }) => (
              <li key={sessionId}>
                <a href={hrefTo('sessions', sessionId)}>
                  {number === undefined ? says.earlierAttempt : says.attemptNumber(number)}
                </a>
                <span class="track" aria-hidden="true">
                  <span class={`stretch stretch-${status}`} style={{ left: `${left}%`, width: `${width}%` }} />
                </span>
                <span class="quiet-text">
                  <Time at={from} /> · {duration((to ?? now.value) - from)}
                  {to === undefined && ` ${says.tookSoFar}`}
                  {tokens > 0 && ` · ${count(tokens)}`}
                  {cost > 0 && ` · ${money(cost)}`}
                </span>
                {statusDetail && <Line text={statusDetail} length={200} class="job-error" />}
              </li>
            ),
          )}
          {lostLast && <LostRow {...lostLast} isCut={isCut} />}
        </ol>
      )}
    </section>
  )
}

const LostRow = ({ count, first, from, to, isCut }: Lost & { isCut: boolean }) => (
  <li>
    <span>{first === undefined ? says.earlierAttempts(count) : says.attemptNumber(first, first + count - 1)}</span>
    <span class="quiet-text lost">
      {isCut ? says.sessionNotFound(count) : says.sessionNotKept(count)}
      {from !== undefined && (
        <>
          {' · '}
          <Time at={from} />
          {to !== undefined && ` · ${duration(to - from)}`}
        </>
      )}
    </span>
  </li>
)
