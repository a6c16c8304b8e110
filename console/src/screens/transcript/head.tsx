import { useSignal } from '@preact/signals'
import type { PermissionMode, SessionInfo } from '../../../../client/index.js'
import { client } from '../../api.js'
import { loaded } from '../../loaded.js'
import { count, money } from '../../model/format.js'
import { modesOf } from '../../model/modes.js'
import { Dialog } from '../../parts/dialog.js'
import { Field } from '../../parts/field.js'
import { Icon } from '../../parts/icon.js'
import { Failure, Underway } from '../../parts/notice.js'
import { Back, Heading } from '../../parts/page.js'
import { Status } from '../../parts/status.js'
import { Line } from '../../parts/untrusted.js'
import { useWhileShown } from '../../parts/while-shown.js'
import { goer, hrefTo } from '../../route.js'
import { forgetSession, keepSession } from '../../state/sessions.js'
import { texts } from '../../texts.js'
import type { TranscriptState } from './state.js'

const says = texts.transcript

type Asking = 'menu' | 'rename' | 'end' | 'remove' | undefined

interface HeadProps {
  state: TranscriptState
  onFind: () => void
  onBegin: () => Promise<void>
}

/** Which session it is, how it stands, what it costs, and what can be done with it. */
export function Head({ state, onFind, onBegin }: HeadProps) {
  const asking = useSignal<Asking>(undefined)
  const session = state.session.value
  if (!session)
    return (
      <header class="page-head transcript-head">
        <Back href={hrefTo('sessions')} label={says.back} />
        {state.error.value !== undefined && <Heading>{says.title}</Heading>}
      </header>
    )
  const now = state.now.value
  const status = state.status.value ?? session.status
  return (
    <header class="page-head transcript-head">
      <Back href={hrefTo('sessions')} label={says.back} />
      <div class="head-title">
        <Heading>
          <Line text={session.title} length={120} />
        </Heading>
        <p class="quiet-text">
          <Status status={status} detail={now.statusDetail} /> · <Line text={session.profile} length={40} /> ·{' '}
          <Line text={session.cwd} length={120} class="path" />
        </p>
      </div>
      <div class="meters">
        {now.context && (
          <span class="meter" title={says.context(count(now.context.totalTokens), count(now.context.maxTokens))}>
            <meter min={0} max={100} value={Math.min(100, now.context.percentage)} aria-label={says.contextLabel} />
            {Math.round(now.context.percentage)} %
          </span>
        )}
        <span title={says.tokens(count(now.usage.inputTokens), count(now.usage.outputTokens))}>
          {money(now.totalCostUsd)}
        </span>
      </div>
      <div class="page-actions">
        <Switches state={state} session={session} />
        <button type="button" class="bare" aria-label={says.find} title={says.find} onClick={onFind}>
          <Icon name="search" />
        </button>
        <button
          type="button"
          class="bare"
          aria-label={says.actions}
          title={says.actions}
          onClick={() => {
            asking.value = 'menu'
          }}
        >
          <Icon name="more" />
        </button>
      </div>
      {asking.value !== undefined && <Actions state={state} session={session} asking={asking} onBegin={onBegin} />}
    </header>
  )
}

function Switches({ state, session }: { state: TranscriptState; session: SessionInfo }) {
  const error = useSignal<unknown>(undefined)
  const { permissionMode, model, capabilities } = state.now.value
  const isOver = state.status.value === 'closed' || state.status.value === 'failed'
  const change = async (act: () => Promise<void>): Promise<void> => {
    error.value = undefined
    try {
      await act()
    } catch (failure) {
      error.value = failure
    }
  }
  const modes = modesOf(session.engine)
  const models = capabilities?.models ?? []
  return (
    <>
      <select
        aria-label={says.mode}
        title={says.mode}
        disabled={isOver}
        value={permissionMode ?? 'default'}
        onChange={(event) => {
          const mode = event.currentTarget.value as PermissionMode
          // it shows what is, until the agent says that it has changed
          event.currentTarget.value = permissionMode ?? 'default'
          void change(() => state.handle.setMode(mode))
        }}
      >
        {modes.map((mode) => (
          <option key={mode} value={mode}>
            {texts.modes[mode]}
          </option>
        ))}
      </select>
      {models.length > 0 ? (
        <select
          aria-label={says.model}
          title={says.model}
          disabled={isOver}
          value={model ?? ''}
          onChange={(event) => {
            const chosen = event.currentTarget.value
            event.currentTarget.value = model ?? ''
            void change(() => state.handle.setModel(chosen || undefined))
          }}
        >
          {!models.some(({ value }) => value === model) && <option value={model ?? ''}>{model ?? says.model}</option>}
          {models.map(({ value, displayName }) => (
            <option key={value} value={value}>
              {displayName}
            </option>
          ))}
        </select>
      ) : (
        model && <Line text={model} class="quiet-text model" length={40} />
      )}
      {error.value !== undefined && <Failure error={error.value} />}
    </>
  )
}

interface ActionsProps {
  state: TranscriptState
  session: SessionInfo
  asking: { value: Asking }
  onBegin: () => Promise<void>
}

function Actions({ state, session, asking, onBegin }: ActionsProps) {
  const error = useSignal<unknown>(undefined)
  const title = useSignal(session.title)
  const done = useSignal<string | undefined>(undefined)
  const isBusy = useSignal(false)
  const signal = useWhileShown()
  const close = (): void => {
    asking.value = undefined
  }
  const attempt = async (act: () => Promise<unknown>): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    error.value = undefined
    try {
      await act()
      // by then another one may be open
      if (!signal.aborted) close()
    } catch (failure) {
      error.value = failure
    } finally {
      isBusy.value = false
    }
  }
  const save = (format: 'markdown' | 'json', how: 'copy' | 'download') => async (): Promise<void> => {
    error.value = undefined
    try {
      const { copyTranscript, downloadTranscript } = await loaded(import('./save.js'))
      await (how === 'copy' ? copyTranscript : downloadTranscript)(session, format)
      done.value = how === 'copy' ? says.copied : undefined
    } catch (failure) {
      error.value = failure
    }
  }
  const rename = async (): Promise<void> => {
    const renamed = await client.sessions.rename(session.id, title.value.trim() || null, { signal })
    state.session.value = renamed
    keepSession(renamed)
  }
  const kind = asking.value
  const isOver = state.status.value === 'closed' || state.status.value === 'failed'
  return (
    <Dialog title={kind === 'end' || kind === 'remove' ? texts.sessions.sure[kind] : says.actions} onClose={close}>
      {kind === 'menu' && (
        <div class="menu">
          <button type="button" onClick={() => void save('markdown', 'copy')()}>
            {says.copyMarkdown}
          </button>
          <button type="button" onClick={() => void save('markdown', 'download')()}>
            {says.downloadMarkdown}
          </button>
          <button type="button" onClick={() => void save('json', 'download')()}>
            {says.downloadJson}
          </button>
          <button
            type="button"
            onClick={() => {
              // at once: by the time that it is there, another one may be open
              close()
              void onBegin()
            }}
          >
            {says.toBegin}
          </button>
          {(['rename', 'end', 'remove'] as const).map(
            (next) =>
              !(next === 'end' && isOver) && (
                <button
                  key={next}
                  type="button"
                  class={next === 'rename' ? undefined : 'danger'}
                  onClick={() => {
                    asking.value = next
                  }}
                >
                  {texts.sessions[next]}
                </button>
              ),
          )}
          <p class="quiet-text" role="status">
            {done.value}
          </p>
        </div>
      )}
      {kind === 'rename' && (
        <form
          class="form"
          onSubmit={(event) => {
            event.preventDefault()
            void attempt(rename)
          }}
        >
          <Field label={texts.sessions.name} hint={texts.sessions.renameHint}>
            {(given) => (
              <input
                {...given}
                dir="auto"
                maxLength={500}
                value={title.value}
                onInput={(event) => {
                  title.value = event.currentTarget.value
                }}
              />
            )}
          </Field>
          <div class="form-end">
            {isBusy.value && <Underway />}
            <button type="submit" class="primary" aria-disabled={isBusy.value}>
              {texts.sessions.save}
            </button>
          </div>
        </form>
      )}
      {(kind === 'end' || kind === 'remove') && (
        <div class="form">
          <p>{texts.sessions[`${kind}Explain`]}</p>
          <div class="form-end">
            {isBusy.value && <Underway />}
            <button type="button" onClick={close}>
              {texts.shell.cancel}
            </button>
            <button
              type="button"
              class="danger"
              aria-disabled={isBusy.value}
              onClick={() =>
                void attempt(async () => {
                  if (kind === 'end') return state.handle.close({ signal })
                  const go = goer()
                  await client.sessions.remove(session.id, { signal })
                  forgetSession(session.id)
                  go(hrefTo('sessions'))
                })
              }
            >
              {texts.sessions[kind]}
            </button>
          </div>
        </div>
      )}
      {error.value !== undefined && <Failure error={error.value} />}
    </Dialog>
  )
}
