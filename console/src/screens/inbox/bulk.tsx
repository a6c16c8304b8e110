import { useSignal } from '@preact/signals'
import type { Answer } from '../../../../client/index.js'
import { countsByTool, isWaiting } from '../../model/inbox.js'
import { Deny } from '../../parts/answer/deny.js'
import { Settled } from '../../parts/answer/writing.js'
import { Dialog } from '../../parts/dialog.js'
import { focusDrawn } from '../../parts/key-focus.js'
import { Line } from '../../parts/untrusted.js'
import { texts } from '../../texts.js'
import { focusList } from './keys.js'
import type { InboxState } from './state.js'

const says = texts.inbox
const MAX_TOOLS = 8

/** Chooses, and answers what was chosen at once. */
export function BulkBar({
  state,
  onDone,
}: {
  state: InboxState
  onDone: (counts: { taken: number; refused: number }) => void
}) {
  const asks = useSignal<'allow' | 'deny' | undefined>(undefined)
  const approvals = state.entries.value.filter((entry) => entry.item.kind === 'permission' && isWaiting(entry))
  const chosen = approvals.filter(({ key }) => state.chosen.value.has(key))
  const count = chosen.length
  // what somebody is in the middle of is not taken away; its place stays, as what is below must not move under the pointer
  if (approvals.length === 0 && asks.value === undefined) return <div class="bulk" />
  const send = async (answer: Answer): Promise<void> => {
    asks.value = undefined
    const answered = state.answerChosen(answer)
    // the button that has led here goes with what was chosen
    focusDrawn(focusList)
    onDone(await answered)
  }
  const close = (): void => {
    asks.value = undefined
    if (count === 0) focusDrawn(focusList)
  }
  return (
    <div class="bulk">
      <label class="tick">
        <input
          type="checkbox"
          checked={count > 0 && count === approvals.length}
          ref={(box) => {
            if (box) box.indeterminate = count > 0 && count < approvals.length
          }}
          onChange={(event) =>
            state.choose(
              approvals.map(({ key }) => key),
              event.currentTarget.checked,
            )
          }
        />
        {count > 0 ? says.chosen(count) : says.chooseAll}
      </label>
      {count > 0 && (
        <>
          <button type="button" onClick={() => (asks.value = 'allow')}>
            {says.allowChosen(count)}
          </button>
          <button type="button" onClick={() => (asks.value = 'deny')}>
            {says.denyChosen(count)}
          </button>
        </>
      )}
      {asks.value && (
        <Dialog title={asks.value === 'allow' ? says.allowTitle(count) : says.denyTitle(count)} onClose={close}>
          <ul class="bulk-tools">
            {countsByTool(chosen)
              .slice(0, MAX_TOOLS)
              .map(([tool, each]) => (
                <li key={tool}>
                  {each} × <Line text={tool} length={60} class="mono" />
                </li>
              ))}
            {count > 0 && (
              <li class="quiet-text">{says.inSessions(new Set(chosen.map(({ item }) => item.session.id)).size)}</li>
            )}
          </ul>
          {asks.value === 'allow' ? (
            <>
              {count === 0 && <Settled />}
              <div class="form-end">
                <button type="button" class="quiet" onClick={close}>
                  {count > 0 ? texts.shell.cancel : texts.shell.close}
                </button>
                {count > 0 && (
                  <button type="button" class="primary" onClick={() => void send('allow')}>
                    {says.allow}
                  </button>
                )}
              </div>
            </>
          ) : (
            <Deny waits={count > 0} onCancel={close} onDeny={(answer) => void send(answer)} />
          )}
        </Dialog>
      )}
    </div>
  )
}
