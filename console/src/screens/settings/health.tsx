import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { GatewayError } from '../../../../client/index.js'
import { request } from '../../api.js'
import { Fact } from '../../parts/fact.js'
import { Failure, Loading } from '../../parts/notice.js'
import { Time } from '../../parts/time.js'
import { Line } from '../../parts/untrusted.js'
import { Rereading } from '../../state/reread.js'
import { texts } from '../../texts.js'

const says = texts.settings
const EVERY_MS = 15_000

/** What `GET /console/status` tells. */
interface Status {
  version: string
  node: string
  startedAt: number
  storage: { outlasts: boolean; writable: boolean }
  sessions: { live: number; parked: number; ended: number }
  agents: { agent: string; found: boolean; problem?: string }[]
  webhooks: {
    name: string
    origin: string
    state: 'ok' | 'failing' | 'gone'
    since?: number
    failures?: number
    status?: number
    error?: string
  }[]
  deliveries: { pending: number; delivered: number; failedAttempts: number; lost: number }
}

/** How the gateway is: asked again while somebody looks. */
export function Health() {
  const status = useSignal<Status | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  useEffect(() => {
    const reading = new Rereading(async (signal) => {
      try {
        status.value = await request<Status>('GET', '/console/status', { signal })
        error.value = undefined
      } catch (failure) {
        if (!signal.aborted) error.value = failure
      }
    })
    const unfollow = reading.followLooks()
    const timer = setInterval(() => !document.hidden && reading.again(), EVERY_MS)
    return () => {
      clearInterval(timer)
      unfollow()
    }
  }, [])
  const isLimited = error.value instanceof GatewayError && error.value.status === 403
  const now = status.value
  return (
    <>
      <section>
        <h2>{says.gateway}</h2>
        {isLimited && <p class="quiet-text">{says.limited}</p>}
        {error.value !== undefined && !isLimited && <Failure error={error.value} />}
        {!now && error.value === undefined && <Loading />}
        {now && (
          <dl class="fact-list">
            <Fact name={says.version}>
              {now.version} <span class="quiet-text">{says.runsOn(now.node)}</span>
            </Fact>
            <Fact name={says.since}>
              <Time at={now.startedAt} />
            </Fact>
            <Fact name={says.storage}>
              {now.storage.outlasts ? says.onDisk : says.inMemory}
              {!now.storage.writable && <p class="state-bad">{says.takesNothing}</p>}
            </Fact>
            <Fact name={says.sessions}>
              {says.sessionCounts(now.sessions.live, now.sessions.parked, now.sessions.ended)}
            </Fact>
          </dl>
        )}
      </section>
      {now && (
        <>
          <section>
            <h2>{says.agents}</h2>
            {now.agents.length === 0 ? <p class="quiet-text">{says.noAgents}</p> : <Agents all={now.agents} />}
          </section>
          <section>
            <h2>{says.deliveries}</h2>
            {now.webhooks.length === 0 ? <p class="quiet-text">{says.noWebhooks}</p> : <Webhooks all={now.webhooks} />}
            {now.webhooks.length + now.deliveries.pending + now.deliveries.delivered + now.deliveries.lost > 0 && (
              <p class="quiet-text">
                {says.deliveryCounts(now.deliveries.pending, now.deliveries.delivered, now.deliveries.lost)}
              </p>
            )}
          </section>
        </>
      )}
    </>
  )
}

const Agents = ({ all }: { all: Status['agents'] }) => (
  <ul class="states">
    {all.map(({ agent, found, problem }) => (
      <li key={agent}>
        <Line text={agent} length={60} class="strong" />
        <span class={found ? 'state-good' : 'state-bad'}>{found ? says.found : says.notFound}</span>
        {problem && <Line text={problem} length={400} class="state-more" />}
      </li>
    ))}
  </ul>
)

const Webhooks = ({ all }: { all: Status['webhooks'] }) => (
  <ul class="states">
    {all.map(({ name, origin, state, since, failures, status, error }) => (
      <li key={`${name} ${origin}`}>
        <Line text={name || origin} length={80} class="strong" />
        <span class={state === 'ok' ? 'state-good' : 'state-bad'}>{says.states[state]}</span>
        <span class="state-more">
          <Line text={origin} class="mono" />
          {since !== undefined && (
            <>
              {' '}
              <Time at={since} />
            </>
          )}
          {failures !== undefined && `, ${says.failures(failures)}`}
          {status !== undefined && `, ${status}`}
          {error !== undefined && (
            <>
              , <Line text={error} length={200} />
            </>
          )}
        </span>
      </li>
    ))}
  </ul>
)
