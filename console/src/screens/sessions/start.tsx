import { useSignal } from '@preact/signals'
import { useMemo, useRef } from 'preact/hooks'
import type { CreateSessionRequest, GatewayError, PermissionMode, ProfileInfo } from '../../../../client/index.js'
import { client, sentenceOf } from '../../api.js'
import { CreateKey } from '../../model/create-key.js'
import { modesOf } from '../../model/modes.js'
import { Dialog } from '../../parts/dialog.js'
import { Directory } from '../../parts/directory.js'
import { Field, toRefused } from '../../parts/field.js'
import { Failure, Underway } from '../../parts/notice.js'
import { OfferedState, useOffered } from '../../parts/offered-profiles.js'
import { Segments } from '../../parts/segments.js'
import { useWhileShown } from '../../parts/while-shown.js'
import { goer, hrefTo } from '../../route.js'
import { keep, keptAs, useKeeping } from '../../state/kept.js'
import { keepSession, sessions } from '../../state/sessions.js'
import { texts } from '../../texts.js'
import { Adopt } from './adopt.js'

const says = texts.start

/** What a profile offers to choose from. */
const modelsOf = (profile: ProfileInfo | undefined): string[] =>
  [...new Set([...(profile?.provider?.models ?? []), profile?.provider?.model, profile?.defaults?.model])].filter(
    (model): model is string => model !== undefined,
  )

interface Begun {
  profile: string
  directory: string
  mode: '' | PermissionMode
  model: string
  prompt: string
}

/** Under which what was filled in is kept. */
const DRAFT = 'session'

/** Starts a session, or goes on with one that an agent keeps. */
export function StartDialog({ onClose }: { onClose: () => void }) {
  const begun = useMemo(() => keptAs<Begun>(DRAFT), [])
  const profile = useSignal(begun?.profile ?? '')
  const directory = useSignal(begun?.directory ?? sessions.value[0]?.cwd ?? '')
  const mode = useSignal<'' | PermissionMode>(begun?.mode ?? '')
  const model = useSignal(begun?.model ?? '')
  const prompt = useSignal(begun?.prompt ?? '')
  const isAdopting = useSignal(false)
  const error = useSignal<unknown>(undefined)
  const isBusy = useSignal(false)
  const key = useRef(new CreateKey())
  const signal = useWhileShown()

  const offered = useOffered((all) => {
    // one that was kept may be gone by now
    if (!all.some(({ name }) => name === profile.value)) profile.value = all[0]?.name ?? ''
  })
  const profiles = offered.profiles.value ?? []

  useKeeping(() => {
    const written = { directory: directory.value, mode: mode.value, model: model.value, prompt: prompt.value }
    const isBegun = written.prompt !== '' || written.model !== '' || written.mode !== ''
    keep(DRAFT, isBegun ? { ...written, profile: profile.value } : undefined)
  })

  /** @param more of the one to go on with */
  const start = async (more?: Partial<CreateSessionRequest>): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    error.value = undefined
    const go = goer()
    try {
      if (!(await offered.listed())) return
      const wanted: CreateSessionRequest = {
        cwd: directory.value.trim(),
        ...(profile.value && { profile: profile.value }),
        // an earlier one goes on as it was: what is filled in for a new one is not meant for it
        ...(more ?? {
          ...(mode.value && { permissionMode: mode.value }),
          ...(model.value.trim() && { model: model.value.trim() }),
          ...(prompt.value.trim() && { prompt: prompt.value }),
        }),
      }
      const session = await client.sessions.create(wanted, { ...key.current.for(wanted), signal })
      keep(DRAFT, undefined)
      keepSession(session)
      onClose()
      go(hrefTo('sessions', session.id))
    } catch (failure) {
      error.value = failure
      toRefused()
    } finally {
      isBusy.value = false
    }
  }

  const chosen = profiles.find(({ name }) => name === profile.value)
  const refusals = (error.value as GatewayError | undefined)?.errors ?? []
  const refusalOf = (field: string): string | undefined =>
    refusals.find(({ path }) => path.replace(/^\//, '') === field)?.message
  const isAtField = ['cwd', 'permissionMode', 'model', 'prompt', ...(profiles.length > 0 ? ['profile'] : [])].some(
    refusalOf,
  )
  return (
    <Dialog title={says.title} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          if (!isAdopting.value) void start()
        }}
      >
        <Segments
          legend={says.title}
          options={[
            ['fresh', says.fresh],
            ['adopt', says.adopt],
          ]}
          value={isAdopting.value ? 'adopt' : 'fresh'}
          onChange={(how) => {
            isAdopting.value = how === 'adopt'
          }}
        />
        <OfferedState {...offered} />
        {profiles.length > 0 && (
          <Field label={texts.sessions.profile} hint={chosen?.description} error={refusalOf('profile')}>
            {(given) => (
              <select
                {...given}
                value={profile.value}
                onChange={(event) => {
                  profile.value = event.currentTarget.value
                  const next = profiles.find(({ name }) => name === profile.value)
                  if (mode.value && !modesOf(next?.engine).includes(mode.value)) mode.value = ''
                }}
              >
                {profiles.map(({ name }) => (
                  <option key={name}>{name}</option>
                ))}
              </select>
            )}
          </Field>
        )}
        <Directory
          label={says.directory}
          hint={says.directoryHint}
          error={refusalOf('cwd')}
          value={directory.value}
          onValue={(path) => {
            directory.value = path
          }}
        />
        {isAdopting.value ? (
          <Adopt profile={profile.value} directory={directory.value.trim()} isBusy={isBusy.value} onChoose={start} />
        ) : (
          <>
            <div class="form-pair">
              <Field
                label={says.mode}
                hint={mode.value && texts.modeHints[mode.value]}
                error={refusalOf('permissionMode')}
              >
                {(given) => (
                  <select
                    {...given}
                    value={mode.value}
                    onChange={(event) => {
                      mode.value = event.currentTarget.value as PermissionMode
                    }}
                  >
                    <option value="">{says.byProfile}</option>
                    {modesOf(chosen?.engine).map((name) => (
                      <option key={name} value={name}>
                        {texts.modes[name]}
                      </option>
                    ))}
                  </select>
                )}
              </Field>
              <Field label={says.model} hint={says.modelHint} error={refusalOf('model')}>
                {(given) => (
                  <>
                    <input
                      {...given}
                      list="start-models"
                      value={model.value}
                      spellcheck={false}
                      onInput={(event) => {
                        model.value = event.currentTarget.value
                      }}
                    />
                    <datalist id="start-models">
                      {modelsOf(chosen).map((name) => (
                        <option key={name} value={name} />
                      ))}
                    </datalist>
                  </>
                )}
              </Field>
            </div>
            <Field label={says.prompt} hint={says.promptHint} error={refusalOf('prompt')}>
              {(given) => (
                <textarea
                  {...given}
                  rows={4}
                  dir="auto"
                  value={prompt.value}
                  onInput={(event) => {
                    prompt.value = event.currentTarget.value
                  }}
                  onKeyDown={(event) => {
                    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) void start()
                  }}
                />
              )}
            </Field>
          </>
        )}
        {error.value !== undefined && !isAtField && <Failure error={error.value} />}
        {error.value !== undefined && isAtField && (
          <p class="unseen" role="alert">
            {sentenceOf(error.value)}
          </p>
        )}
        {isAdopting.value ? (
          isBusy.value && <Underway />
        ) : (
          <div class="form-end">
            {isBusy.value && <Underway />}
            <button type="submit" class="primary" aria-disabled={isBusy.value}>
              {says.submit}
            </button>
          </div>
        )}
      </form>
    </Dialog>
  )
}
