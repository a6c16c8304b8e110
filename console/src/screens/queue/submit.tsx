import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { GatewayError, type JobInfo } from '../../../../client/index.js'
import { client } from '../../api.js'
import { CreateKey } from '../../model/create-key.js'
import { Dialog } from '../../parts/dialog.js'
import { Directory } from '../../parts/directory.js'
import { Field, toRefused } from '../../parts/field.js'
import { Failure, Underway } from '../../parts/notice.js'
import { OfferedState, useOffered } from '../../parts/offered-profiles.js'
import { useWhileShown } from '../../parts/while-shown.js'
import { goer } from '../../route.js'
import { keep, useKeptForm } from '../../state/kept.js'
import { texts } from '../../texts.js'

const says = texts.queue

type Name = 'prompt' | 'profile' | 'cwd' | 'model' | 'attempts' | 'priority' | 'maxTokens' | 'maxMinutes'

/** Where the gateway says what is wrong with a field. */
const PATHS: Record<Name, string> = {
  prompt: 'session.prompt',
  profile: 'session.profile',
  cwd: 'session.cwd',
  model: 'session.model',
  attempts: 'attempts',
  priority: 'priority',
  maxTokens: 'maxTokens',
  maxMinutes: 'maxDurationMs',
}

/** A new job, or one like an earlier one. */
export function SubmitDialog({
  from,
  onClose,
  onSubmitted,
}: {
  from?: JobInfo
  onClose: () => void
  /** Leads on to it, where somebody still waits for it. */
  onSubmitted: (job: JobInfo, go: (href: string) => void) => void
}) {
  const draft = `job.${from?.id ?? 'new'}`
  const values = useKeptForm<Record<Name, string>>(draft, () => ({
    prompt: from?.prompt ?? '',
    profile: from?.profile ?? '',
    cwd: from?.cwd ?? '',
    model: '',
    attempts: String(from?.maxAttempts ?? 1),
    priority: '',
    maxTokens: '',
    maxMinutes: '',
  }))
  const error = useSignal<unknown>(undefined)
  const isBusy = useSignal(false)
  const key = useRef(new CreateKey())
  const signal = useWhileShown()

  const offered = useOffered((all) => {
    const first = all[0]?.name
    const { profile } = values.value
    // one that was kept may be gone by now; that of a job which is to run again is not made another one
    const isThere = (profile && profile === from?.profile) || all.some(({ name }) => name === profile)
    if (!isThere && first !== undefined) values.value = { ...values.value, profile: first }
  })
  const profiles = offered.profiles.value ?? []

  const submit = async (): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    error.value = undefined
    const go = goer()
    const number = (text: string): number | undefined => (text.trim() === '' ? undefined : Number(text))
    try {
      if (!(await offered.listed())) return
      const { prompt, profile, cwd, model, attempts, priority, maxTokens, maxMinutes } = values.value
      const minutes = number(maxMinutes)
      const wanted = {
        session: { prompt, cwd: cwd.trim(), ...(profile && { profile }), ...(model.trim() && { model: model.trim() }) },
        ...given('attempts', number(attempts)),
        ...given('priority', number(priority)),
        ...given('maxTokens', number(maxTokens)),
        ...given('maxDurationMs', minutes === undefined ? undefined : Math.round(minutes * 60_000)),
      }
      const job = await client.jobs.submit(wanted, { ...key.current.for(wanted), signal })
      keep(draft, undefined)
      onClose()
      onSubmitted(job, go)
    } catch (failure) {
      error.value = failure
      toRefused()
    } finally {
      isBusy.value = false
    }
  }

  const refusal = error.value instanceof GatewayError ? error.value : undefined
  const refusalOf = (name: Name): string | undefined =>
    refusal?.errors.find(({ path }) => path.replace(/^\//, '').replaceAll('/', '.') === PATHS[name])?.message
  const isAtField = (Object.keys(PATHS) as Name[]).some(
    (name) => refusalOf(name) && (name !== 'profile' || profiles.length > 0),
  )
  /** What an input of this name has. */
  const bound = (name: Name) => ({
    value: values.value[name],
    onInput: (event: { currentTarget: { value: string } }) => {
      values.value = { ...values.value, [name]: event.currentTarget.value }
    },
  })
  const numeric = (name: Name, label: string, hint?: string) => (
    <Field label={label} hint={hint} error={refusalOf(name)}>
      {(given) => <input {...given} {...bound(name)} inputMode="decimal" />}
    </Field>
  )
  return (
    <Dialog title={says.submitTitle} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
      >
        {from && <p class="quiet-text">{says.againHint}</p>}
        <Field label={says.prompt} error={refusalOf('prompt')}>
          {(given) => <textarea {...given} {...bound('prompt')} rows={5} dir="auto" required />}
        </Field>
        <OfferedState {...offered} />
        <div class="pair">
          {profiles.length > 0 && (
            <Field label={says.profile} error={refusalOf('profile')}>
              {(given) => (
                <select {...given} {...bound('profile')}>
                  {profiles.map(({ name }) => (
                    <option key={name}>{name}</option>
                  ))}
                </select>
              )}
            </Field>
          )}
          {numeric('attempts', says.tries, says.triesHint)}
        </div>
        <Directory
          label={says.directory}
          hint={says.directoryHint}
          error={refusalOf('cwd')}
          value={values.value.cwd}
          onValue={(path) => {
            values.value = { ...values.value, cwd: path }
          }}
        />
        <details open={['model', 'priority', 'maxTokens', 'maxMinutes'].some((name) => refusalOf(name as Name))}>
          <summary>{says.more}</summary>
          <div class="pair">
            <Field label={says.model} hint={says.modelHint} error={refusalOf('model')}>
              {(given) => <input {...given} {...bound('model')} spellcheck={false} />}
            </Field>
            {numeric('priority', says.priority, says.priorityHint)}
            {numeric('maxTokens', says.maxTokens, says.perAttempt)}
            {numeric('maxMinutes', says.maxMinutes, says.perAttempt)}
          </div>
        </details>
        {error.value !== undefined && !isAtField && <Failure error={error.value} />}
        <div class="form-end">
          {isBusy.value && <Underway />}
          <button type="submit" class="primary" aria-disabled={isBusy.value}>
            {says.submitAction}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

const given = (name: string, value: number | undefined) => (value === undefined ? {} : { [name]: value })
