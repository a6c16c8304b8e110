import type { QueueStats } from '../../../../client/index.js'
import { count } from '../../model/format.js'
import { Time } from '../../parts/time.js'
import { texts } from '../../texts.js'

const says = texts.queue

/** How full the queue is, and how much of the day's tokens is used. */
export function Stats({ stats }: { stats: QueueStats }) {
  const { dailyTokenLimit: limit, dailyTokensUsed: used } = stats
  return (
    <div class="queue-stats">
      <span>{says.running(stats.running, stats.maxConcurrency)}</span>
      <span>{says.queuedCount(stats.queued)}</span>
      <span>{says.parkedCount(stats.parked)}</span>
      <span>{says.tokensToday(count(used), limit === undefined ? undefined : count(limit))}</span>
      {limit !== undefined && <meter min={0} max={limit} value={Math.min(used, limit)} aria-hidden="true" />}
      {stats.paused && (
        <p class="notice">
          <span>
            {says.paused} {stats.resumesAt !== undefined && <Time at={stats.resumesAt} />}
          </span>
        </p>
      )}
    </div>
  )
}
