import { useSignal } from '@preact/signals'
import { useId, useLayoutEffect } from 'preact/hooks'
import type { Answer } from '../../../../client/index.js'
import { answersFrom, type Choice, NOTHING, toggled, written } from '../../model/choices.js'
import type { Question } from '../../model/questions.js'
import { draftOf, noteDraft } from '../../state/drafts.js'
import { texts } from '../../texts.js'
import { Line, Text } from '../untrusted.js'
import { Deny, useFocusBack } from './deny.js'
import { Settled, useWriting } from './writing.js'

const says = texts.answer

/** The questions of one request as a form. */
export function Questions({
  requestId,
  questions,
  waits,
  onAnswer,
  onWriting,
}: {
  requestId: string
  questions: readonly Question[]
  /** Whether it can be answered now. */
  waits: boolean
  onAnswer: (answer: Answer) => void
  onWriting: ((isWriting: boolean) => void) | undefined
}) {
  const choices = useSignal<readonly Choice[]>(draftOf(requestId).choices ?? questions.map(() => NOTHING))
  const missing = useSignal<readonly number[]>([])
  const denies = useSignal(false)
  const isSent = useSignal(!waits)
  const isWriting = !isSent.value && (denies.value || choices.value.some(({ other }) => other !== ''))
  useWriting(isWriting, onWriting)
  // one that was not taken is to be given again
  useLayoutEffect(() => {
    if (waits) isSent.value = false
  }, [waits])
  const choose = (at: number, choice: Choice): void => {
    choices.value = choices.value.map((one, place) => (place === at ? choice : one))
    noteDraft(requestId, { choices: choices.value })
    missing.value = missing.value.filter((place) => place !== at)
  }
  const submit = (): void => {
    const given = answersFrom(questions, choices.value)
    missing.value = given.missing
    if (given.missing.length > 0 || !waits) return
    isSent.value = true
    onAnswer({ answers: given.answers })
  }
  const buttons = useFocusBack(denies.value)
  return (
    <>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          submit()
        }}
      >
        {questions.map((question, at) => (
          <OneQuestion
            key={at}
            question={question}
            choice={choices.value[at]!}
            isMissing={missing.value.includes(at)}
            waits={waits}
            onChange={(choice) => choose(at, choice)}
          />
        ))}
        {!waits && isWriting && !denies.value && <Settled />}
        {waits && !denies.value && (
          <div class="form-row unhurried" ref={buttons}>
            <button type="submit" class="primary">
              {says.answer}
            </button>
            <button type="button" class="quiet" data-key="deny" onClick={() => (denies.value = true)}>
              {says.skipQuestion}
            </button>
          </div>
        )}
      </form>
      {denies.value && (
        <Deny
          requestId={requestId}
          waits={waits}
          onCancel={() => (denies.value = false)}
          onDeny={(answer) => {
            denies.value = false
            onAnswer(answer)
          }}
        />
      )}
    </>
  )
}

function OneQuestion({
  question: { question, header, options, multiSelect },
  choice,
  isMissing,
  waits,
  onChange,
}: {
  question: Question
  choice: Choice
  isMissing: boolean
  waits: boolean
  onChange: (choice: Choice) => void
}) {
  const id = useId()
  return (
    <fieldset class="ask-question" aria-describedby={isMissing ? `${id}-error` : undefined}>
      <legend>
        {header && <Line text={header} length={40} class="ask-question-head" />}
        <Text text={question} first={1_000} class="prose" />
      </legend>
      {options.map(({ label, description }, at) => (
        <label key={at} class="tick ask-option">
          <input
            type={multiSelect ? 'checkbox' : 'radio'}
            name={id}
            checked={choice.labels.includes(label)}
            disabled={!waits}
            onChange={() => onChange(toggled(choice, label, multiSelect))}
          />
          <span>
            <Line text={label} length={200} />
            {description && <Line text={description} length={300} class="quiet-text ask-option-about" />}
          </span>
        </label>
      ))}
      <label class="own-words">
        <span class="quiet-text">{says.own}</span>
        <input
          type="text"
          dir="auto"
          value={choice.other}
          // with the focus where it is: the next letters are meant for it
          readOnly={!waits}
          onInput={(event) => onChange(written(choice, event.currentTarget.value, multiSelect))}
        />
      </label>
      {isMissing && (
        <p class="field-error" id={`${id}-error`} role="alert">
          {says.missing}
        </p>
      )}
    </fieldset>
  )
}
