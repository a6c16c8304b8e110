import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import { isSettled, isWaiting } from '../model/inbox.js'
import { useKeptPlace } from '../parts/kept-place.js'
import { focusDrawn } from '../parts/key-focus.js'
import { Empty, Failure, Loading } from '../parts/notice.js'
import { Page } from '../parts/page.js'
import { Segments } from '../parts/segments.js'
import { Time } from '../parts/time.js'
import { feedLink } from '../state/feed.js'
import '../styles/inbox.css'
import { texts } from '../texts.js'
import { BulkBar } from './inbox/bulk.js'
import { focusList, KeyHints, useKeys } from './inbox/keys.js'
import { Row } from './inbox/row.js'
import { InboxState, type Kind } from './inbox/state.js'

const says = texts.inbox
const KINDS: readonly Kind[] = ['all', 'permission', 'question']

/** What waits for a person, over all sessions. */
export function screen() {
  const state = useMemo(() => new InboxState(), [])
  useEffect(state.follow, [state])
  const list = useKeptPlace<HTMLOListElement>()
  const told = useSignal('')
  useKeys(state, list)

  const entries = state.entries.value
  const waits = entries.filter(isWaiting).length
  const answered = entries.filter(isSettled).length
  const isAway = feedLink.value.state === 'away'
  const isLeftOut = state.isLeftOut.value
  const error = state.error.value
  const failure = error !== undefined && !isAway && <Failure error={error} retry={() => state.again()} />
  return (
    <Page
      title={says.title}
      actions={
        <>
          {answered > 0 && (
            <button
              type="button"
              class="quiet"
              onClick={() => {
                state.hideAnswered()
                focusDrawn(focusList)
              }}
            >
              {says.hideAnswered(answered)}
            </button>
          )}
          <Segments
            legend={says.kind}
            options={KINDS.map((kind) => [kind, says.kinds[kind]] as const)}
            value={state.kind.value}
            onChange={(kind) => state.show(kind)}
          />
        </>
      }
    >
      {entries.length === 0 && failure}
      {state.readAt.value === undefined && error === undefined && <Loading />}
      {state.readAt.value !== undefined && entries.length === 0 && isLeftOut && <Loading />}
      {state.readAt.value !== undefined && entries.length === 0 && !isLeftOut && (
        <Empty>
          <p class="empty-head">{says.empty}</p>
          <p>{says.emptyLead}</p>
        </Empty>
      )}
      {entries.length > 0 && (
        <>
          <BulkBar
            state={state}
            onDone={({ taken, refused }) => {
              told.value = says.bulkDone(taken, refused)
            }}
          />
          <ol class="asks" ref={list} aria-label={says.list}>
            {entries.map((entry) => (
              <Row
                key={entry.key}
                entry={entry}
                state={state}
                isOpen={state.current.value === entry.key}
                isChosen={state.chosen.value.has(entry.key)}
              />
            ))}
          </ol>
          {failure}
          {isAway && (
            <p class="notice">
              {says.stale}
              {state.readAt.value !== undefined && (
                <span class="quiet-text">
                  {says.asOf} <Time at={state.readAt.value} />
                </span>
              )}
            </p>
          )}
          {state.isCut.value && <p class="quiet-text asks-end">{says.moreWait}</p>}
          {waits === 0 && !isLeftOut && <p class="quiet-text asks-end">{says.allAnswered}</p>}
          <KeyHints />
        </>
      )}
      <p class="unseen" role="status">
        {told.value}
      </p>
    </Page>
  )
}
