import { AnswerForm } from '../../parts/answer.js'
import { Time } from '../../parts/time.js'
import { Line } from '../../parts/untrusted.js'
import { texts } from '../../texts.js'
import type { TranscriptState } from './state.js'

const says = texts.transcript

/** What the session waits for, always in sight: who can answer does so here. */
export function WaitedFor({ state }: { state: TranscriptState }) {
  const { permissions, executions } = state.now.value.waitingFor
  const [first] = permissions
  if (!first && executions.length === 0) return null
  return (
    <section class="waited-for" aria-label={says.waitsFor}>
      {first && (
        <>
          <p class="waited-head" role="status">
            <span class="ask-mark" aria-hidden="true" />
            {says.waitsForYou}
            {permissions.length > 1 && <span class="quiet-text">{says.andMore(permissions.length - 1)}</span>}
          </p>
          <AnswerForm
            key={first.id}
            request={first}
            onAnswer={async (answer) => {
              await state.handle.answer(first.id, answer)
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
