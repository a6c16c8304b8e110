import type { JobInfo, SessionInfo } from '../../../../client/index.js'
import { attemptsOf, laidOut } from '../../model/board.js'
import { count, duration, money } from '../../model/format.js'
import { Time } from '../../parts/time.js'
import { Line } from '../../parts/untrusted.js'
import { hrefTo } from '../../route.js'
import { now } from '../../state/clock.js'
import { texts } from '../../texts.js'

const says = texts.queue

/** The attempts of a job, one under the other on one line of time. */
export function Timeline({ job, sessions }: { job: JobInfo; sessions: readonly SessionInfo[] }) {
  const attempts = laidOut(attemptsOf(job, sessions), now.value)
  return (
    <section>
      <h2>{says.attempts}</h2>
      {attempts.length === 0 ? (
        <p class="quiet-text">{says.noAttempts}</p>
      ) : (
        <ol class="timeline">
          {attempts.map(({ number, sessionId, status, statusDetail, from, to, left, width, cost, tokens }) => (
            <li key={sessionId}>
              <a href={hrefTo('sessions', sessionId)}>{says.attemptNumber(number)}</a>
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
          ))}
        </ol>
      )}
    </section>
  )
}
