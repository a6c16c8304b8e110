import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { Create } from '../parts/create.js'
import { Empty, Reading } from '../parts/notice.js'
import { Page } from '../parts/page.js'
import { hrefTo, route } from '../route.js'
import { feedLink } from '../state/feed.js'
import { QueueState } from '../state/jobs.js'
import { access, signedIn } from '../state/me.js'
import '../styles/queue.css'
import { texts } from '../texts.js'
import { Board } from './queue/board.js'
import { JobDetail } from './queue/job.js'
import { Stats } from './queue/stats.js'
import { SubmitDialog } from './queue/submit.js'

const says = texts.queue

/** The board, or one job. */
export function screen() {
  const now = access.value
  if (now.state === 'in' && now.me.features?.queue === false)
    return (
      <Page title={says.title}>
        <Empty>{says.off}</Empty>
      </Page>
    )
  return <Queue />
}

function Queue() {
  const state = useMemo(() => new QueueState(), [])
  const who = signedIn.value
  useEffect(() => (who === undefined ? undefined : state.follow()), [state, who])
  const isThere = feedLink.value.state === 'live' || feedLink.value.state === 'back'
  useEffect(() => {
    if (isThere) state.resume()
  }, [isThere])
  const [id] = route.value.params
  if (id !== undefined) return <JobDetail key={id} id={id} state={state} />
  return <Jobs state={state} />
}

function Jobs({ state }: { state: QueueState }) {
  const isSubmitting = useSignal(false)
  const error = state.error.value
  return (
    <Page title={says.title} actions={<Create label={says.submit} isOpen={isSubmitting} />}>
      {state.stats.value && <Stats stats={state.stats.value} />}
      <Reading error={error} isLoaded={state.isLoaded.value} retry={() => void state.again()} />
      {state.isLoaded.value && <Board state={state} />}
      {isSubmitting.value && (
        <SubmitDialog
          onClose={() => {
            isSubmitting.value = false
          }}
          onSubmitted={(job, go) => {
            state.keep(job)
            go(hrefTo('queue', job.id))
          }}
        />
      )}
    </Page>
  )
}
