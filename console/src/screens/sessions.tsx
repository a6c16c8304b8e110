import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { type Filter, fitting, waitingCount } from '../model/session-filter.js'
import { Create } from '../parts/create.js'
import { useKeptPlace } from '../parts/kept-place.js'
import { More } from '../parts/more.js'
import { Empty, Reading } from '../parts/notice.js'
import { Page } from '../parts/page.js'
import { Segments } from '../parts/segments.js'
import { route } from '../route.js'
import { lastTold, waiting } from '../state/feed.js'
import { followSessions, listing, loadEarlier, refreshSessions, sessions } from '../state/sessions.js'
import '../styles/sessions.css'
import { texts } from '../texts.js'
import { Row } from './sessions/row.js'
import { StartDialog } from './sessions/start.js'
import { TranscriptScreen } from './transcript.js'

const says = texts.sessions
const FILTERS = Object.keys(says.filters) as Filter[]

/** The line that an address names; what is no number names none. */
const seqOf = (param: string | undefined): number | undefined =>
  param !== undefined && /^\d{1,15}$/.test(param) ? Number(param) : undefined

/** The list, or one of them. */
export function screen() {
  const [id, seq] = route.value.params
  if (id === undefined) return <SessionList />
  return <TranscriptScreen key={id} id={id} seq={seqOf(seq)} />
}

function SessionList() {
  useEffect(followSessions, [])
  const list = useKeptPlace<HTMLUListElement>()
  const filter = useSignal<Filter>('all')
  const profile = useSignal('')
  const search = useSignal('')
  const isStarting = useSignal(false)
  const { isLoaded, hasMore, error } = listing.value
  const all = sessions.value
  const told = lastTold.value
  const lineOf = ({ id }: { id: string }): string => told.get(id)?.preview ?? ''
  const shown = fitting(all, { filter: filter.value, profile: profile.value, search: search.value }, lineOf)
  const profiles = [...new Set(all.map((session) => session.profile))].filter(Boolean).sort()
  const { permissions, questions } = waiting.value
  const waits = waitingCount(all, { hasMore, requests: permissions + questions })
  return (
    <Page title={says.title} actions={<Create label={says.start} isOpen={isStarting} />}>
      <div class="filters">
        <Segments
          legend={says.show}
          options={FILTERS.map((name) => [name, <FilterName key={name} name={name} waits={waits} />] as const)}
          value={filter.value}
          onChange={(name) => {
            filter.value = name
          }}
        />
        <input
          type="search"
          aria-label={says.search}
          placeholder={says.searchHint}
          value={search.value}
          onInput={(event) => {
            search.value = event.currentTarget.value
          }}
        />
        {profiles.length > 1 && (
          <select
            aria-label={says.profile}
            value={profile.value}
            onChange={(event) => {
              profile.value = event.currentTarget.value
            }}
          >
            <option value="">{says.everyProfile}</option>
            {profiles.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
      </div>
      <Reading error={error} isLoaded={isLoaded} retry={() => void refreshSessions()} />
      {isLoaded && all.length === 0 && (
        <Empty>
          <p class="empty-head">{says.empty}</p>
          <p>{says.emptyLead}</p>
        </Empty>
      )}
      {isLoaded && all.length > 0 && shown.length === 0 && <Empty>{says.noneMatch}</Empty>}
      {shown.length > 0 && (
        <ul class="session-list" ref={list} aria-label={says.list}>
          {shown.map((session) => (
            <Row key={session.id} session={session} line={lineOf(session)} />
          ))}
        </ul>
      )}
      {hasMore && (
        <More class="quiet" onMore={() => void loadEarlier()}>
          {says.loadMore}
        </More>
      )}
      {isStarting.value && (
        <StartDialog
          onClose={() => {
            isStarting.value = false
          }}
        />
      )}
    </Page>
  )
}

const FilterName = ({ name, waits = 0 }: { name: Filter; waits: number | undefined }) => (
  <>
    {says.filters[name]}
    {name === 'waiting' && waits > 0 && <b class="count">{waits}</b>}
  </>
)
