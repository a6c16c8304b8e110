import { useSignal } from '@preact/signals'
import type { Answer, PermissionRequest } from '../../../client/index.js'
import { jsonText } from '../model/json-text.js'
import { type Question, questionsOf } from '../model/questions.js'
import { texts } from '../texts.js'
import { Failure } from './notice.js'
import { Time } from './time.js'
import { Line, Text } from './untrusted.js'

const says = texts.answer

interface AnswerFormProps {
  request: PermissionRequest
  /** Rejects when the answer was not taken. */
  onAnswer: (answer: Answer) => Promise<void>
}

/** What an agent asks: leave to run a tool, as it is or with another input, or a question. */
export function AnswerForm({ request, onAnswer }: AnswerFormProps) {
  const error = useSignal<unknown>(undefined)
  const isBusy = useSignal(false)
  const answer = async (given: Answer): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    error.value = undefined
    try {
      await onAnswer(given)
    } catch (failure) {
      error.value = failure
    } finally {
      isBusy.value = false
    }
  }
  const questions = questionsOf(request)
  return (
    <div class="answer">
      {questions ? (
        <Questions questions={questions} isBusy={isBusy.value} answer={answer} />
      ) : (
        <Approval request={request} isBusy={isBusy.value} answer={answer} />
      )}
      {request.expiresAt !== undefined && (
        <p class="quiet-text">
          {says.expires} <Time at={request.expiresAt} />
        </p>
      )}
      {error.value !== undefined && <Failure error={error.value} />}
    </div>
  )
}

interface PartProps {
  isBusy: boolean
  answer: (given: Answer) => Promise<void>
}

const MAX_EDITED = 200_000

function Approval({ request, isBusy, answer }: PartProps & { request: PermissionRequest }) {
  const edited = useSignal<string | undefined>(undefined)
  const reason = useSignal<string | undefined>(undefined)
  const problem = useSignal<string | undefined>(undefined)
  const whole = jsonText(request.input, MAX_EDITED)
  const allow = (): void => {
    if (edited.value === undefined) return void answer('allow')
    try {
      const updatedInput: unknown = JSON.parse(edited.value)
      if (typeof updatedInput !== 'object' || updatedInput === null || Array.isArray(updatedInput)) throw new Error()
      problem.value = undefined
      void answer({ behavior: 'allow', updatedInput: updatedInput as Record<string, unknown> })
    } catch {
      problem.value = says.notAnObject
    }
  }
  return (
    <>
      <p>
        <Line text={request.title ?? request.toolName} class="answer-what" />{' '}
        {request.title && <Line text={request.toolName} class="quiet-text" length={80} />}
      </p>
      {request.description && <Text text={request.description} class="answer-why" first={500} />}
      {request.decisionReason && <Line text={request.decisionReason} class="quiet-text" length={300} />}
      {edited.value === undefined ? (
        <Text text={whole.text} class="code answer-input" first={1_200} />
      ) : (
        <textarea
          class="code"
          rows={8}
          spellcheck={false}
          aria-label={says.input}
          aria-invalid={problem.value !== undefined}
          value={edited.value}
          onInput={(event) => {
            edited.value = event.currentTarget.value
          }}
        />
      )}
      {problem.value && (
        <p class="field-error" role="alert">
          {problem.value}
        </p>
      )}
      {reason.value !== undefined && (
        <input
          aria-label={says.reason}
          placeholder={says.reason}
          value={reason.value}
          onInput={(event) => {
            reason.value = event.currentTarget.value
          }}
        />
      )}
      <div class="form-row">
        <button type="button" class="primary" disabled={isBusy} onClick={allow}>
          {edited.value === undefined ? says.allow : says.allowEdited}
        </button>
        {reason.value === undefined ? (
          <>
            <button type="button" disabled={isBusy} onClick={() => void answer('deny')}>
              {says.deny}
            </button>
            <button
              type="button"
              class="quiet"
              onClick={() => {
                reason.value = ''
              }}
            >
              {says.denyWithReason}
            </button>
          </>
        ) : (
          <button
            type="button"
            disabled={isBusy}
            onClick={() => void answer({ behavior: 'deny', ...(reason.value && { message: reason.value }) })}
          >
            {says.denySaying}
          </button>
        )}
        {edited.value === undefined && !whole.isCut && (
          <button
            type="button"
            class="quiet"
            onClick={() => {
              edited.value = whole.text
            }}
          >
            {says.edit}
          </button>
        )}
      </div>
    </>
  )
}

function Questions({ questions, isBusy, answer }: PartProps & { questions: Question[] }) {
  const chosen = useSignal<Record<string, string[]>>({})
  const other = useSignal<Record<string, string>>({})
  const answers = Object.fromEntries(
    questions.map(({ question }) => [
      question,
      [...(chosen.value[question] ?? []), (other.value[question] ?? '').trim()].filter(Boolean).join(', '),
    ]),
  )
  const isWhole = questions.every(({ question }) => answers[question])
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault()
        if (isWhole) void answer({ behavior: 'allow', updatedInput: { answers } })
      }}
    >
      {questions.map(({ question, header, options, multiSelect }) => (
        <fieldset key={question} class="question">
          <legend>
            {header && <Line text={header} class="quiet-text" length={60} />} <Line text={question} length={600} />
          </legend>
          {options.map(({ label, description }) => (
            <label key={label} class="option">
              <input
                type={multiSelect ? 'checkbox' : 'radio'}
                name={question}
                checked={chosen.value[question]?.includes(label) ?? false}
                onChange={(event) => {
                  const before = multiSelect ? (chosen.value[question] ?? []) : []
                  const now = before.filter((one) => one !== label)
                  chosen.value = { ...chosen.value, [question]: event.currentTarget.checked ? [...now, label] : now }
                }}
              />
              <span>
                <Line text={label} />
                {description && <Line text={description} class="quiet-text" length={400} />}
              </span>
            </label>
          ))}
          <input
            aria-label={says.other}
            placeholder={says.other}
            dir="auto"
            value={other.value[question] ?? ''}
            onInput={(event) => {
              const text = event.currentTarget.value
              other.value = { ...other.value, [question]: text }
              if (!multiSelect && text) chosen.value = { ...chosen.value, [question]: [] }
            }}
          />
        </fieldset>
      ))}
      <div class="form-row">
        <button type="submit" class="primary" disabled={isBusy || !isWhole}>
          {says.submit}
        </button>
        <button type="button" disabled={isBusy} onClick={() => void answer('deny')}>
          {says.decline}
        </button>
      </div>
    </form>
  )
}
