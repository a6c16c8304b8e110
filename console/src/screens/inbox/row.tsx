import { useLayoutEffect, useRef } from 'preact/hooks'
import type { InboxItem } from '../../../../client/index.js'
import { type Entry, isWaiting, summaryOf } from '../../model/inbox.js'
import { visibleLine } from '../../model/visible.js'
import { AnswerForm } from '../../parts/answer.js'
import { focusDrawn, hasKeyFocus } from '../../parts/key-focus.js'
import { Failure } from '../../parts/notice.js'
import { lead } from '../../parts/second-press.js'
import { Time } from '../../parts/time.js'
import { Line } from '../../parts/untrusted.js'
import { hrefTo } from '../../route.js'
import { texts } from '../../texts.js'
import { FateLine } from './fate.js'
import { focusRow } from './keys.js'
import type { InboxState } from './state.js'

const says = texts.inbox

interface RowProps {
  entry: Entry
  state: InboxState
  isOpen: boolean
  isChosen: boolean
}

/** What tells it from the others by ear: many ask for one tool. */
const nameOf = (item: InboxItem) =>
  [
    visibleLine(item.request.toolName, 60),
    visibleLine(summaryOf(item), 100),
    visibleLine(item.session.title, 60),
  ] as const

/** One request: a line, and all of it when it is open. */
export function Row({ entry, state, isOpen, isChosen }: RowProps) {
  const { item, fate, key } = entry
  const { request, session, kind } = item
  const waits = isWaiting(entry)
  const row = useRef<HTMLLIElement>(null)
  const head = useRef<HTMLButtonElement>(null)
  const isInside = row.current?.contains(document.activeElement) === true
  useLayoutEffect(() => {
    const at = document.activeElement
    // what it was on went, or takes nothing any more, with what somebody answered
    const isLost = at === document.body || (at instanceof HTMLInputElement && at.disabled)
    if (isInside && isLost) lead(head.current, { preventScroll: true })
  }, [waits])
  return (
    <li ref={row} class="ask" data-open={isOpen} data-fate={fate.state}>
      <div class="ask-line">
        {kind === 'permission' ? (
          <input
            type="checkbox"
            class="ask-choose"
            aria-label={says.choose(...nameOf(item))}
            data-key="choose"
            checked={isChosen}
            disabled={!waits}
            onChange={(event) => state.choose([key], event.currentTarget.checked)}
          />
        ) : (
          <span class="ask-choose" aria-hidden="true">
            ?
          </span>
        )}
        <button
          ref={head}
          type="button"
          class="ask-head"
          aria-expanded={isOpen}
          onClick={() => state.open(isOpen ? undefined : key)}
        >
          <span class="mark" aria-hidden="true" />
          <Line text={kind === 'question' ? says.question : request.toolName} length={60} class="ask-tool" />
          <Line
            text={summaryOf(item)}
            length={160}
            class="ask-summary"
            // of what is to be run nothing is moved by what it begins with
            dir={kind === 'permission' ? 'ltr' : 'auto'}
          />
          <Line text={session.title} length={60} class="ask-session" />
          {fate.state === 'waiting' ? <Time at={item.since} class="ask-age" /> : <FateLine fate={fate} />}
        </button>
      </div>
      {fate.state === 'waiting' && fate.error !== undefined && (
        <div class="ask-refused">
          <Failure error={fate.error} />
        </div>
      )}
      {isOpen && <Body entry={entry} state={state} />}
    </li>
  )
}

const focusOpen = (): void => focusRow(document.querySelector<HTMLElement>('.asks'))

function Body({ entry, state }: Pick<RowProps, 'entry' | 'state'>) {
  const { item } = entry
  const { request, session } = item
  return (
    <div class="ask-body">
      <AnswerForm
        key={entry.key}
        request={request}
        isQuestion={item.kind === 'question'}
        waits={isWaiting(entry)}
        onAnswer={(answer) => {
          const isByKeys = hasKeyFocus()
          void state.answer(entry.key, answer)
          if (isByKeys) focusDrawn(focusOpen)
        }}
        onWriting={(isWriting) => {
          // what was settled meanwhile was looked at once more, and has no button to go back to
          if (!isWriting && !isWaiting(entry)) focusDrawn(focusOpen)
        }}
      />
      <p class="ask-foot quiet-text">
        <a href={hrefTo('sessions', session.id, item.seq)}>{says.openSession}</a>
        {session.profile && <Line text={session.profile} length={60} />}
        <Line text={session.cwd} length={120} class="mono" />
        {session.jobId !== undefined && <a href={hrefTo('queue', session.jobId)}>{says.ofJob}</a>}
        {request.agentId && (
          <span>
            {says.agent} <Line text={request.agentId} length={60} />
          </span>
        )}
        {item.expiresAt !== undefined && isWaiting(entry) && (
          <span>
            {says.expires} <Time at={item.expiresAt} />
          </span>
        )}
      </p>
    </div>
  )
}
