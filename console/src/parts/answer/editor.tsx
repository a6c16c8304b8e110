import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { PermissionRequest } from '../../../../client/index.js'
import {
  type FieldProblem,
  type FormField,
  fieldsOf,
  inputFrom,
  schemaOf,
  type Values,
  valuesOf,
} from '../../model/input-form.js'
import { parsedObject, wholeJson } from '../../model/json.js'
import { visibleLine } from '../../model/visible.js'
import { draftOf, noteDraft } from '../../state/drafts.js'
import { useKeeping } from '../../state/kept.js'
import { texts } from '../../texts.js'
import { Dialog } from '../dialog.js'
import { Field, toRefused } from '../field.js'
import { Segments } from '../segments.js'
import { Settled } from './writing.js'

const says = texts.answer

function wordsOf(problem: FieldProblem): string {
  if (typeof problem === 'object') {
    if ('least' in problem) return says.least(problem.least)
    if ('most' in problem) return says.most(problem.most)
    return 'shortest' in problem ? says.shortest(problem.shortest) : says.longest(problem.longest)
  }
  return { required: says.required, number: says.noNumber, integer: says.noInteger, json: says.noJson }[problem]
}

/** The input of a tool, edited before it is allowed: as a form where one can be made, and as JSON always. */
export function InputEditor({
  request: { id, toolName, input },
  waits,
  onAllow,
  onClose,
}: {
  request: PermissionRequest
  /** Whether it can be answered still. */
  waits: boolean
  /** Without an input: it was not changed. */
  onAllow: (input: Record<string, unknown> | undefined) => void
  onClose: () => void
}) {
  const fields = useMemo(() => fieldsOf(schemaOf(input), input), [input])
  const before = useMemo(() => wholeJson(input), [input])
  const edited = draftOf(id).input ?? input
  const begun = useMemo(() => draftOf(id).editing, [id])
  const way = useSignal<'form' | 'json'>(begun?.way ?? (fields ? 'form' : 'json'))
  const values = useSignal<Values>(begun?.values ?? (fields ? valuesOf(fields, edited) : {}))
  const text = useSignal(begun?.text ?? wholeJson(edited))
  // also what cannot be sent yet: whoever closes this finds it as it was
  useKeeping(() => {
    noteDraft(id, { editing: { way: way.value, values: values.value, text: text.value } })
  })
  const problems = useSignal<ReadonlyMap<string, FieldProblem>>(new Map())
  const jsonProblem = useSignal<string | undefined>(undefined)

  /** What the fields, or the text, make; what is wrong is said at them. */
  const made = (): Record<string, unknown> | undefined => {
    if (way.value === 'form' && fields) {
      const given = inputFrom(fields, values.value, input)
      problems.value = 'problems' in given ? given.problems : new Map()
      return 'input' in given ? given.input : undefined
    }
    const parsed = parsedObject(text.value)
    jsonProblem.value =
      'value' in parsed ? undefined : parsed.problem === 'syntax' ? says.jsonSyntax(parsed.line) : says.jsonNoObject
    return 'value' in parsed ? parsed.value : undefined
  }
  const turn = (to: 'form' | 'json'): void => {
    const edited = made()
    // what is wrong is put right first, so that nothing gets lost on the way
    if (!edited) {
      toRefused()
      return
    }
    if (to === 'json') text.value = wholeJson(edited)
    else if (fields) values.value = valuesOf(fields, edited)
    way.value = to
  }
  const hasForm = fields !== undefined
  return (
    <Dialog title={says.editTitle(visibleLine(toolName, 60))} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          if (!waits) return
          const edited = made()
          if (!edited) return toRefused()
          onAllow(wholeJson(edited) === before ? undefined : edited)
        }}
      >
        {!waits && <Settled />}
        <div class="form-row spread">
          <p class="quiet-text">{says.editLead}</p>
          {hasForm && (
            <Segments
              legend={says.input}
              options={[
                ['form', says.asForm],
                ['json', says.asJson],
              ]}
              value={way.value}
              onChange={turn}
            />
          )}
        </div>
        {way.value === 'form' && fields ? (
          fields.map((field) => (
            <OneField
              key={field.name}
              field={field}
              value={values.value[field.name] ?? ''}
              problem={problems.value.get(field.name)}
              onChange={(value) => {
                values.value = { ...values.value, [field.name]: value }
              }}
            />
          ))
        ) : (
          <Field label={says.json} error={jsonProblem.value}>
            {(given) => (
              <textarea
                {...given}
                class="code"
                rows={14}
                spellcheck={false}
                value={text.value}
                onInput={(event) => {
                  text.value = event.currentTarget.value
                }}
              />
            )}
          </Field>
        )}
        <div class="form-end">
          <button type="button" class="quiet" onClick={onClose}>
            {waits ? texts.shell.cancel : texts.shell.close}
          </button>
          <button type="submit" class="primary" disabled={!waits}>
            {says.allowEdited}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function OneField({
  field: { kind, label, hint, choices, isRequired },
  value,
  problem,
  onChange,
}: {
  field: FormField
  value: string | boolean
  problem: FieldProblem | undefined
  onChange: (value: string | boolean) => void
}) {
  const name = visibleLine(label, 60)
  const about = hint === undefined ? undefined : visibleLine(hint, 300)
  const error = problem && wordsOf(problem)
  if (kind === 'boolean')
    return (
      <label class="tick">
        <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />
        <bdi>{name}</bdi>
      </label>
    )
  const text = String(value)
  return (
    <Field label={name} hint={about} error={error}>
      {(given) => {
        const common = { ...given, 'aria-required': isRequired, value: text, spellcheck: false }
        if (kind === 'choice')
          return (
            <select {...common} onChange={(event) => onChange(event.currentTarget.value)}>
              {!isRequired && <option value="" />}
              {choices.map((choice) => (
                <option key={choice} value={choice}>
                  {visibleLine(choice, 100)}
                </option>
              ))}
            </select>
          )
        if (kind === 'long' || kind === 'json')
          return (
            <textarea
              {...common}
              class="code"
              dir={kind === 'json' ? 'ltr' : 'auto'}
              rows={Math.min(Math.max(text.split('\n', 12).length, 3), 12)}
              onInput={(event) => onChange(event.currentTarget.value)}
            />
          )
        return (
          <input
            {...common}
            type="text"
            dir={kind === 'number' ? 'ltr' : 'auto'}
            inputMode={kind === 'number' ? 'decimal' : undefined}
            onInput={(event) => onChange(event.currentTarget.value)}
          />
        )
      }}
    </Field>
  )
}
