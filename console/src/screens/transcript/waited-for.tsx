import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { Answer, PermissionRequest } from '../../../../client/index.js'
import { questionsOf } from '../../model/questions.js'
import { AnswerForm } from '../../parts/answer.js'
import { focusDrawn, hasKeyFocus } from '../../parts/key-focus.js'
import { Failure } from '../../parts/notice.js'
import { lead } from '../../parts/second-press.js'
import { Time } from '../../parts/time.js'
import { Line } from '../../parts/untrusted.js'
import { forgetDraft } from '../../state/drafts.js'
import { texts } from '../../texts.js'
import type { TranscriptState } from './state.js'

const says = texts.transcript

const focusComposer = (): void => lead(document.querySelector<HTMLElement>('.composer textarea'))

const NOTHING: TranscriptState['now']['value']['waitingFor'] = { permissions: [], executions: [] }

/** What the session waits for, always in sight: who can answer does so here. */
export function WaitedFor({ state }: { state: TranscriptState }) {
  const { permissions, executions } = state.isGone.value ? NOTHING : state.now.value.waitingFor
  const isWriting = useSignal(false)
  const shown = useRef<PermissionRequest | undefined>(undefined)
  const before = shown.current
  const same = permissions.find(({ id }) => id === before?.id)
  // what somebody is in the middle of answering stays until they are done with it
  const first = same ?? (isWriting.value ? before : permissions[0])
  shown.current = first
  const isSettled = first !== undefined && !permissions.includes(first)
  if (!first && executions.length === 0) return null
  return (
    <section class="waited-for" aria-label={says.waitsFor}>
      {first && (
        <>
          {!isSettled && (
            <p class="waited-head" role="status">
              <span class="ask-mark" aria-hidden="true" />
              {says.waitsForYou}
              {permissions.length > 1 && <span class="quiet-text">{says.andMore(permissions.length - 1)}</span>}
            </p>
          )}
          <Asked
            key={first.id}
            request={first}
            state={state}
            isSettled={isSettled}
            onWriting={(is) => {
              isWriting.value = is
            }}
          />
        </>
      )}
      {executions.map(({ executionId, toolName, expiresAt }) => (
        <p key={executionId} class="quiet-text">
          {says.waitsForResult} <Line text={toolName} length={80} />{' '}
          {expiresAt !== undefined && <Time at={expiresAt} />}
        </p>
      ))}
    </section>
  )
}

interface AskedProps {
  request: PermissionRequest
  state: TranscriptState
  isSettled: boolean
  onWriting: (isWriting: boolean) => void
}

function Asked({ request, state, isSettled, onWriting }: AskedProps) {
  const error = useSignal<unknown>(undefined)
  const isSending = useSignal(false)
  const answer = async (given: Answer): Promise<void> => {
    isSending.value = true
    error.value = undefined
    try {
      await state.handle.answer(request.id, given)
      forgetDraft(request.id)
    } catch (failure) {
      error.value = failure
    } finally {
      isSending.value = false
    }
  }
  const isQuestion = questionsOf(request) !== undefined
  return (
    <div class="answer">
      {!isQuestion && (
        <p class="strong">
          <Line text={request.toolName} length={80} />
        </p>
      )}
      <AnswerForm
        request={request}
        isQuestion={isQuestion}
        waits={!isSending.value && !isSettled}
        onAnswer={(given) => {
          const isByKeys = hasKeyFocus()
          void answer(given)
          if (isByKeys) focusDrawn(focusComposer)
        }}
        onWriting={(isWriting) => {
          onWriting(isWriting)
          if (!isWriting && isSettled) focusDrawn(focusComposer)
        }}
      />
      {isSending.value && <p class="quiet-text">{says.onItsWay}</p>}
      {request.expiresAt !== undefined && !isSettled && (
        <p class="quiet-text">
          {texts.answer.expires} <Time at={request.expiresAt} />
        </p>
      )}
      {error.value !== undefined && <Failure error={error.value} />}
    </div>
  )
}
