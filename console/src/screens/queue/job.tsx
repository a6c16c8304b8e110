import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import type { GatewayError, JobInfo, SessionInfo, WebhookDelivery } from '../../../../client/index.js'
import { client } from '../../api.js'
import { isOver } from '../../model/board.js'
import { count, duration, money } from '../../model/format.js'
import { Confirm } from '../../parts/confirm.js'
import { Fact } from '../../parts/fact.js'
import { Members } from '../../parts/members.js'
import { Empty, Failure, Loading, Underway } from '../../parts/notice.js'
import { Page } from '../../parts/page.js'
import { lead } from '../../parts/second-press.js'
import { Time } from '../../parts/time.js'
import { unhurry } from '../../parts/unhurried.js'
import { Line, Text } from '../../parts/untrusted.js'
import { hrefTo } from '../../route.js'
import type { QueueState } from '../../state/jobs.js'
import { texts } from '../../texts.js'
import { JobMark } from './board.js'
import { SubmitDialog } from './submit.js'
import { type Found, Timeline } from './timeline.js'

const says = texts.queue
/** The sessions of a job are among those that were created since; as many pages of them are looked through. */
const MAX_PAGES = 5

const versionOf = ({ status, attempt, sessionId }: JobInfo): string => [status, attempt, sessionId].join()

/** What an event or a list has the beginning of only: of the prompt always, of what the job came to where it says so. */
function wholeOf(known: JobInfo, read: JobInfo): Partial<JobInfo> {
  const { prompt, error, result } = read
  if (!known.resultTruncated || versionOf(known) !== versionOf(read)) return { prompt }
  return { prompt, ...(error !== undefined && { error }), ...(result && { result }) }
}

/** All of one job. */
export function JobDetail({ id, state }: { id: string; state: QueueState }) {
  const read = useSignal<JobInfo | undefined>(undefined)
  const found = useSignal<Found | undefined>(undefined)
  const deliveries = useSignal<readonly WebhookDelivery[]>([])
  const error = useSignal<unknown>(undefined)
  const refusal = useSignal<unknown>(undefined)
  const doing = useSignal<'cancel' | 'again' | undefined>(undefined)
  const tries = useSignal(0)
  const isCanceling = useSignal(false)
  const canceler = useRef<HTMLButtonElement>(null)
  const again = useRef<HTMLButtonElement>(null)
  const known = state.jobs.value.get(id)
  const job = known && read.value ? { ...known, ...wholeOf(known, read.value) } : read.value

  // what this page has just read itself is no news
  const news = useRef<string | undefined>(undefined)
  if (known && versionOf(known) !== (read.value && versionOf(read.value))) news.current = versionOf(known)
  // the pages were read anew, as after an interruption, and it is on none of the first: nothing tells what was missed of it
  if (!known && read.value && !isOver(read.value)) news.current = `left out ${state.begun.value}`
  // what could not be read is read again with the pages, as after an interruption
  const failedAt = useRef(0)
  if (error.value !== undefined && state.begun.value !== failedAt.current) news.current = `failed ${state.begun.value}`
  useEffect(() => {
    const aborter = new AbortController()
    const { signal } = aborter
    const load = async (): Promise<void> => {
      const job = await client.jobs.get(id, { signal })
      read.value = job
      state.keep(job)
      const [own, tried] = await Promise.all([sessionsOf(job, signal), client.jobs.deliveries(id, { signal })])
      found.value = { job, ...own }
      deliveries.value = tried
    }
    error.value = undefined
    load().catch((failure) => {
      if (signal.aborted) return
      failedAt.current = state.begun.peek()
      error.value = failure
    })
    return () => aborter.abort()
  }, [id, news.current, tries.value])

  const isAtCancel = canceler.current !== null && canceler.current === document.activeElement
  const hasEnded = job !== undefined && isOver(job)
  useLayoutEffect(() => {
    // what it was on goes with the end of the job
    if (hasEnded && isAtCancel) lead(document.querySelector<HTMLElement>('main h1'))
    // it comes under a press that was meant for that
    if (hasEnded && again.current) unhurry(again.current)
  }, [hasEnded])

  const close = (): void => {
    doing.value = undefined
  }
  const cancel = async (): Promise<void> => {
    close()
    if (isCanceling.value) return
    isCanceling.value = true
    refusal.value = undefined
    try {
      state.keep(await client.jobs.cancel(id))
    } catch (failure) {
      refusal.value = failure
    } finally {
      isCanceling.value = false
    }
  }
  const retry = (): void => {
    tries.value++
  }
  const back = { href: hrefTo('queue'), label: says.back }
  if (!job)
    return (
      <Page title={says.job} back={back}>
        {error.value === undefined ? (
          <Loading />
        ) : (error.value as GatewayError).status === 404 ? (
          <Empty>{says.gone}</Empty>
        ) : (
          <Failure error={error.value} retry={retry} />
        )}
      </Page>
    )
  return (
    <Page
      title={says.job}
      back={back}
      actions={
        <>
          <button ref={again} type="button" onClick={() => (doing.value = 'again')}>
            {says.again}
          </button>
          {isCanceling.value && !hasEnded && <Underway />}
          {!hasEnded && (
            <button ref={canceler} type="button" class="danger" onClick={() => (doing.value = 'cancel')}>
              {says.cancel}
            </button>
          )}
        </>
      }
    >
      {error.value !== undefined && <Failure error={error.value} retry={retry} />}
      {refusal.value !== undefined && !hasEnded && <Failure error={refusal.value} />}
      <div class="job-head">
        <JobMark status={job.status} />
        {state.doing.value.has(id) && job.status === 'running' && (
          <Line text={state.doing.value.get(id)!} class="job-doing" />
        )}
      </div>
      <div class="job-columns">
        <div class="job-main">
          <section>
            <h2>{says.prompt}</h2>
            <Text text={job.prompt || says.noPrompt} class="prose" />
          </section>
          {job.error && (
            <section>
              <h2>{says.error}</h2>
              <Text text={job.error} class="job-error" />
            </section>
          )}
          {job.result?.text && (
            <section>
              <h2>{says.result}</h2>
              <Text text={job.result.text} class="prose" />
            </section>
          )}
          {found.value && <Timeline {...found.value} />}
          {(job.webhook || deliveries.value.length > 0) && <Deliveries all={deliveries.value} />}
        </div>
        <Facts job={job} />
      </div>
      {doing.value === 'cancel' && (
        <Confirm
          title={says.cancelTitle}
          lead={says.cancelLead}
          action={says.cancel}
          leave={says.keep}
          onConfirm={() => void cancel()}
          onClose={close}
        />
      )}
      {doing.value === 'again' && (
        <SubmitDialog
          from={job}
          onClose={close}
          onSubmitted={(fresh, go) => {
            state.keep(fresh)
            go(hrefTo('queue', fresh.id))
          }}
        />
      )}
    </Page>
  )
}

async function sessionsOf(job: JobInfo, signal: AbortSignal): Promise<Omit<Found, 'job'>> {
  const sessions: SessionInfo[] = []
  let pages = 0
  const query = job.profile ? { profile: job.profile } : {}
  for await (const page of client.sessions.list({ ...query, signal }).pages()) {
    sessions.push(...page.filter(({ jobId }) => jobId === job.id))
    if ((page.at(-1)?.createdAt ?? 0) < job.createdAt) break
    if (++pages === MAX_PAGES) return { sessions, isCut: true }
  }
  return { sessions, isCut: false }
}

function Facts({ job }: { job: JobInfo }) {
  const { usage } = job
  return (
    <aside class="facts" aria-label={says.facts}>
      <dl class="fact-list">
        {job.sessionId !== undefined && (
          <Fact name={says.session}>
            <a href={hrefTo('sessions', job.sessionId)}>{says.openSession}</a>
          </Fact>
        )}
        <Fact name={says.created}>
          <Time at={job.createdAt} />
        </Fact>
        {job.startedAt !== undefined && (
          <Fact name={says.started}>
            <Time at={job.startedAt} />
          </Fact>
        )}
        {job.finishedAt !== undefined && (
          <Fact name={says.finished}>
            <Time at={job.finishedAt} />
          </Fact>
        )}
        {job.nextRunAt !== undefined && job.status === 'queued' && (
          <Fact name={says.nextRun}>
            <Time at={job.nextRunAt} />
          </Fact>
        )}
        {job.parkedAt !== undefined && (
          <Fact name={says.parkedSince}>
            <Time at={job.parkedAt} />
          </Fact>
        )}
        {job.parkedExecutionId !== undefined && (
          <Fact name={says.waitsFor}>
            <Line text={job.parkedExecutionId} class="mono" />
          </Fact>
        )}
        <Fact name={says.attempts}>{says.attemptOf(job.attempt, job.maxAttempts)}</Fact>
        {job.profile && (
          <Fact name={says.profile}>
            <Line text={job.profile} />
          </Fact>
        )}
        <Fact name={says.directory}>
          <Line text={job.cwd} class="mono" />
        </Fact>
        <Fact name={says.tokens}>{count(usage.tokens)}</Fact>
        <Fact name={says.cost}>{money(usage.cost)}</Fact>
        <Fact name={says.turns}>{usage.numTurns}</Fact>
        {job.webhook && (
          <Fact name={says.webhook}>
            <Line text={job.webhook.url} class="mono" />
          </Fact>
        )}
      </dl>
      {job.meta && (
        <>
          <h2>{says.meta}</h2>
          <Members value={job.meta} />
        </>
      )}
    </aside>
  )
}

function Deliveries({ all }: { all: readonly WebhookDelivery[] }) {
  return (
    <section>
      <h2>{says.deliveries}</h2>
      {all.length === 0 ? (
        <p class="quiet-text">{says.noDeliveries}</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">{says.event}</th>
              <th scope="col">{says.outcome}</th>
              <th scope="col">{says.tried}</th>
              <th scope="col" class="number">
                {says.took}
              </th>
            </tr>
          </thead>
          <tbody>
            {all.map(({ id, type, attempt, at, status, error, durationMs }) => (
              <tr key={`${id} ${attempt} ${at}`}>
                <td>
                  <Line text={type} length={60} />
                </td>
                <td class={error ? 'went-wrong' : undefined}>
                  {[status, error].filter((part) => part !== undefined).join(' ')}
                </td>
                <td>
                  <Time at={at} />
                </td>
                <td class="number">{duration(durationMs)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  )
}
