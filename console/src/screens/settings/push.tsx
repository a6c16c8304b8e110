import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { Failure, Underway } from '../../parts/notice.js'
import { lead } from '../../parts/second-press.js'
import { chosenBy, lookAtPush, pushState, TOLD, type Told, turnPushOff, turnPushOn } from '../../state/push.js'
import { Rereading } from '../../state/reread.js'
import { texts } from '../../texts.js'

const says = texts.settings
const AT_FIRST: readonly Told[] = ['permission_requested', 'session_error']

/** Whether this browser is told, and of what. */
export function Push({ isOn, name }: { isOn: boolean; name: string | undefined }) {
  // another window changes it too, and so do the settings of the browser
  useEffect(() => (isOn ? new Rereading(lookAtPush).followLooks() : undefined), [isOn])
  const section = useRef<HTMLElement>(null)
  const isInside = section.current?.contains(document.activeElement) === true
  useLayoutEffect(() => {
    // what it was on goes where the browser lets nobody ask any more
    if (isInside && document.activeElement === document.body) lead(section.current?.querySelector('h2'))
  }, [pushState.value])
  return (
    <section ref={section}>
      <h2 tabIndex={-1}>{says.push}</h2>
      {isOn ? <Switch name={name} /> : <p class="quiet-text">{says.pushOff}</p>}
    </section>
  )
}

function Switch({ name }: { name: string | undefined }) {
  const before = useMemo(() => chosenBy(name), [])
  const events = useSignal<readonly Told[]>(before.length > 0 ? before : AT_FIRST)
  const error = useSignal<unknown>(undefined)
  const isBusy = useSignal(false)
  const attempt = async (what: () => Promise<void>): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    error.value = undefined
    try {
      await what()
    } catch (failure) {
      error.value = failure
    } finally {
      isBusy.value = false
    }
  }
  const state = pushState.value
  if (state === 'asking') return null
  if (state === 'unsupported') return <p class="quiet-text">{says.pushUnsupported}</p>
  if (state === 'denied') return <p class="quiet-text">{says.pushDenied}</p>
  return (
    <>
      <p class="quiet-text">{state === 'on' ? says.pushIsOn : says.pushLead}</p>
      {state === 'off' && (
        <fieldset class="ticks">
          <legend>{says.pushWhat}</legend>
          {TOLD.map((type) => (
            <label key={type} class="tick">
              <input
                type="checkbox"
                checked={events.value.includes(type)}
                onChange={(event) => {
                  const { checked } = event.currentTarget
                  events.value = TOLD.filter((one) => (one === type ? checked : events.value.includes(one)))
                }}
              />
              {says.pushTypes[type]}
            </label>
          ))}
        </fieldset>
      )}
      {error.value !== undefined && <Failure error={error.value} />}
      <div class="form-row">
        {state === 'off' ? (
          <button
            type="button"
            disabled={events.value.length === 0}
            aria-disabled={isBusy.value}
            onClick={() => void attempt(() => turnPushOn(events.value, name))}
          >
            {says.pushOn}
          </button>
        ) : (
          <button type="button" aria-disabled={isBusy.value} onClick={() => void attempt(turnPushOff)}>
            {says.pushStop}
          </button>
        )}
        {isBusy.value && <Underway>{says.pushWaits}</Underway>}
      </div>
    </>
  )
}
