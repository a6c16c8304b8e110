import { useSignal } from '@preact/signals'
import { useId, useMemo, useRef } from 'preact/hooks'
import {
  GatewayError,
  type PermissionMode,
  type ProfileInfo,
  type UpdateProfileRequest,
} from '../../../../client/index.js'
import { client, sentenceOf } from '../../api.js'
import { CreateKey } from '../../model/create-key.js'
import { modesOf } from '../../model/modes.js'
import {
  changesOf,
  EMPTY_PROFILE,
  formOf,
  type ProfileForm,
  profileOf,
  rebased,
  refusalsAt,
} from '../../model/profile-form.js'
import { visibleLine } from '../../model/visible.js'
import { Dialog } from '../../parts/dialog.js'
import { describedBy, Field, toRefused } from '../../parts/field.js'
import { Failure, Underway } from '../../parts/notice.js'
import { Segments } from '../../parts/segments.js'
import { useWhileShown } from '../../parts/while-shown.js'
import { goer } from '../../route.js'
import { keep, keptAs, useKeeping } from '../../state/kept.js'
import { texts } from '../../texts.js'

const says = texts.profiles

type TextName = {
  [N in keyof ProfileForm]: ProfileForm[N] extends string ? (string extends ProfileForm[N] ? N : never) : never
}[keyof ProfileForm]

/** What was filled in, and what it was made from: what somebody else has changed by the time that it is there again is not taken back. */
interface Begun {
  before: ProfileForm
  form: ProfileForm
}

/** A managed profile, new or changed. What is wrong with it the gateway says, at the field that it is about. */
export function ProfileEditor({
  profile,
  onClose,
  onSaved,
}: {
  profile?: ProfileInfo
  onClose: () => void
  /** Leads on to it, where somebody still waits for it. */
  onSaved: (profile: ProfileInfo, go: (href: string) => void) => void
}) {
  const draft = profile ? `profile.${profile.name}` : 'profile'
  const begun = useMemo(() => keptAs<Begun>(draft), [])
  /** What it was when it was read last. */
  const before = useRef(begun?.before ?? (profile ? formOf(profile) : EMPTY_PROFILE))
  const form = useSignal<ProfileForm>(begun?.form ?? before.current)
  useKeeping(() => {
    const isBegun = JSON.stringify(form.value) !== JSON.stringify(before.current)
    keep(draft, isBegun ? { before: before.current, form: form.value } : undefined)
  })
  const giveUp = (): void => {
    keep(draft, undefined)
    onClose()
  }
  const error = useSignal<unknown>(undefined)
  /** The fields that somebody else has changed meanwhile: whoever saves again means to. */
  const clashes = useSignal<readonly (keyof ProfileForm)[]>([])
  const isBusy = useSignal(false)
  const key = useRef(new CreateKey())
  const signal = useWhileShown()
  const set = <N extends keyof ProfileForm>(name: N, value: ProfileForm[N]): void => {
    form.value = { ...form.value, [name]: value }
  }
  /** Takes in what somebody else has saved since. @returns what is still to be changed; undefined where somebody has to look first */
  const changesNow = async (name: string): Promise<UpdateProfileRequest | undefined> => {
    const now = formOf((await client.profiles.get(name, { signal })).profile)
    const { form: wanted, clashes: found } = rebased(before.current, form.value, now)
    before.current = now
    form.value = wanted
    clashes.value = found
    if (found.length === 0) return changesOf(now, wanted)
    toRefused()
    return undefined
  }
  const save = async (): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    error.value = undefined
    clashes.value = []
    const go = goer()
    try {
      if (!profile) {
        const wanted = profileOf(form.value)
        onSaved(await client.profiles.create(wanted, { ...key.current.for(wanted), signal }), go)
      } else {
        const changes = await changesNow(profile.name)
        if (!changes) return
        if (Object.keys(changes).length > 0)
          onSaved(await client.profiles.update(profile.name, changes, { signal }), go)
      }
      giveUp()
    } catch (failure) {
      error.value = failure
      toRefused()
    } finally {
      isBusy.value = false
    }
  }

  const { at: refused, rest } = refusalsAt(error.value instanceof GatewayError ? error.value.errors : [])
  const at = new Map([...clashes.value.map((name) => [name, says.clash] as const), ...refused])
  const { engine, limitsSession, capabilities } = form.value
  const isProvider = engine === 'provider'

  const text = (name: TextName, label: string, hint?: string, isLong = false) => (
    <Field label={label} hint={hint} error={at.get(name)}>
      {(given) => {
        const common = {
          ...given,
          dir: 'auto' as const,
          spellcheck: isLong && name !== 'mcpServers' && name !== 'providerModels',
          value: form.value[name],
        }
        return isLong ? (
          <textarea {...common} rows={3} onInput={(event) => set(name, event.currentTarget.value)} />
        ) : (
          <input {...common} type="text" onInput={(event) => set(name, event.currentTarget.value)} />
        )
      }}
    </Field>
  )
  return (
    <Dialog title={profile ? says.editTitle(visibleLine(profile.name, 64)) : says.createTitle} onClose={onClose}>
      <form
        class="form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault()
          void save()
        }}
      >
        {!profile && text('name', says.name, says.nameHint)}
        {!profile && (
          <Segments
            legend={says.engine}
            options={(['provider', 'cli'] as const).map((one) => [one, says.engines[one]!] as const)}
            value={engine}
            onChange={(one) => {
              set('engine', one)
              if (!modesOf(one).includes(form.value.defaultMode as PermissionMode)) set('defaultMode', '')
            }}
          />
        )}
        {at.get('engine') && (
          <p class="field-error" role="alert">
            {at.get('engine')}
          </p>
        )}
        {text('description', says.description)}
        {isProvider ? (
          <>
            <div class="pair">
              {text('providerId', says.provider, says.providerHint)}
              {text('providerModel', says.model)}
              {text('providerBaseUrl', says.baseUrl, says.baseUrlHint)}
              {text('providerApiKeyEnv', says.apiKeyEnv, says.apiKeyEnvHint)}
            </div>
            {text('providerModels', says.models, says.oneALine, true)}
          </>
        ) : (
          <>
            <div class="pair">
              {text('agent', says.agent, says.agentHint)}
              {text('configDir', says.configDir, says.configDirHint)}
            </div>
            <Tick
              label={says.trustWorkspace}
              isOn={form.value.trustWorkspace}
              error={at.get('trustWorkspace')}
              onChange={(isOn) => set('trustWorkspace', isOn)}
            />
          </>
        )}
        <div class="pair">
          {text('defaultModel', says.defaultModel)}
          <Field
            label={says.defaultMode}
            hint={texts.modeHints[form.value.defaultMode as PermissionMode]}
            error={at.get('defaultMode')}
          >
            {(given) => (
              <select
                {...given}
                value={form.value.defaultMode}
                onChange={(event) => set('defaultMode', event.currentTarget.value)}
              >
                <option value="">{says.noDefault}</option>
                {modesOf(engine).map((mode) => (
                  <option key={mode} value={mode}>
                    {texts.modes[mode]}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        {isProvider && (
          <>
            <Tick
              label={says.limits}
              hint={says.limitsHint}
              isOn={limitsSession}
              error={at.get('limitsSession')}
              onChange={(isOn) => set('limitsSession', isOn)}
            />
            {limitsSession && (
              <>
                <fieldset class="ticks">
                  <legend>{says.capabilities}</legend>
                  {Object.entries(says.capabilityNames).map(([name, words]) => (
                    <Tick
                      key={name}
                      label={words}
                      isOn={capabilities.includes(name)}
                      onChange={(isOn) =>
                        set('capabilities', isOn ? [...capabilities, name] : capabilities.filter((one) => one !== name))
                      }
                    />
                  ))}
                  {at.get('capabilities') && <p class="field-error">{at.get('capabilities')}</p>}
                </fieldset>
                {text('mcpServers', says.mcpServers, says.mcpServersHint, true)}
                {text('instructions', says.instructions, says.instructionsHint, true)}
              </>
            )}
          </>
        )}
        {error.value !== undefined && at.size === 0 && <Failure error={error.value} />}
        {error.value !== undefined && at.size > 0 && (
          <p class="unseen" role="alert">
            {sentenceOf(error.value)}
          </p>
        )}
        {at.size > 0 && rest.map(({ path, message }) => <p key={path} class="field-error">{`${path}: ${message}`}</p>)}
        <div class="form-end">
          {isBusy.value && <Underway />}
          <button type="button" class="quiet" onClick={giveUp}>
            {texts.shell.cancel}
          </button>
          <button type="submit" class="primary" aria-disabled={isBusy.value}>
            {says.save}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

function Tick({
  label,
  hint,
  error,
  isOn,
  onChange,
}: {
  label: string
  hint?: string
  error?: string | undefined
  isOn: boolean
  onChange: (isOn: boolean) => void
}) {
  const id = useId()
  return (
    <div>
      <label class="tick">
        <input
          type="checkbox"
          checked={isOn}
          aria-describedby={describedBy(id, { hint, error })}
          aria-invalid={error !== undefined}
          onChange={(event) => onChange(event.currentTarget.checked)}
        />
        {label}
      </label>
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error && (
        <p class="field-error" id={`${id}-error`} role="alert">
          {error}
        </p>
      )}
    </div>
  )
}
