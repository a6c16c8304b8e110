import { useSignal } from '@preact/signals'
import type { Answer, PermissionRequest } from '../../../client/index.js'
import { questionsOf } from '../model/questions.js'
import '../styles/answer.css'
import { noteDraft } from '../state/drafts.js'
import { texts } from '../texts.js'
import { Deny, useFocusBack } from './answer/deny.js'
import { InputEditor } from './answer/editor.js'
import { Questions } from './answer/questions.js'
import { useWriting } from './answer/writing.js'
import { Members } from './members.js'
import { Line, Text } from './untrusted.js'

const says = texts.answer

interface AnswerFormProps {
  request: PermissionRequest
  isQuestion: boolean
  /** Whether it can be answered now; otherwise it is shown alone. */
  waits: boolean
  onAnswer: (answer: Answer) => void
  /** Told whether somebody is in the middle of an answer, which is not to be taken away unsent. */
  onWriting?: (isWriting: boolean) => void
}

/** What an agent asks, and the answers to it: leave to run a tool, as it is or with another input, or a question. */
export function AnswerForm({ request, isQuestion, waits, onAnswer, onWriting }: AnswerFormProps) {
  const { title, description, decisionReason, input } = request
  const asked = isQuestion ? questionsOf(request) : undefined
  return (
    <>
      {title && (
        <p class="strong">
          <Line text={title} length={300} />
        </p>
      )}
      {description && <Text text={description} first={1_000} class="prose" />}
      {decisionReason && (
        <p class="quiet-text">
          {says.why}: <Line text={decisionReason} length={300} />
        </p>
      )}
      {asked ? (
        <Questions requestId={request.id} questions={asked} waits={waits} onAnswer={onAnswer} onWriting={onWriting} />
      ) : (
        <>
          {isQuestion && <p class="notice">{says.noQuestion}</p>}
          <Members value={input} />
          <Approval request={request} waits={waits} onAnswer={onAnswer} onWriting={onWriting} />
        </>
      )}
    </>
  )
}

type ApprovalProps = Pick<AnswerFormProps, 'request' | 'waits' | 'onAnswer'> & {
  onWriting: AnswerFormProps['onWriting'] | undefined
}

function Approval({ request, waits, onAnswer, onWriting }: ApprovalProps) {
  const doing = useSignal<'deny' | 'edit' | undefined>(undefined)
  const close = (): void => {
    doing.value = undefined
  }
  useWriting(doing.value !== undefined, onWriting)
  const buttons = useFocusBack(doing.value === 'deny')
  if (doing.value === 'deny')
    return (
      <Deny
        requestId={request.id}
        waits={waits}
        onCancel={close}
        onDeny={(answer) => {
          close()
          onAnswer(answer)
        }}
      />
    )
  if (!waits && doing.value === undefined) return null
  return (
    <div class="form-row unhurried" ref={buttons}>
      {waits && (
        <>
          <button type="button" class="primary" data-key="allow" onClick={() => onAnswer('allow')}>
            {says.allow}
          </button>
          <button
            type="button"
            data-key="deny"
            onClick={() => {
              doing.value = 'deny'
            }}
          >
            {says.denyWith}
          </button>
          <button
            type="button"
            class="quiet"
            data-key="edit"
            onClick={() => {
              doing.value = 'edit'
            }}
          >
            {says.edit}
          </button>
        </>
      )}
      {doing.value === 'edit' && (
        <InputEditor
          request={request}
          waits={waits}
          onClose={close}
          onAllow={(updatedInput) => {
            noteDraft(request.id, { input: updatedInput })
            close()
            onAnswer(updatedInput ? { behavior: 'allow', updatedInput } : 'allow')
          }}
        />
      )}
    </div>
  )
}
