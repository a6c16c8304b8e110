import { useSignal } from '@preact/signals'
import { useEffect, useId, useLayoutEffect, useRef } from 'preact/hooks'
import { client } from '../api.js'
import { Field } from './field.js'

/** Milliseconds without a key before directories are looked for. */
const PAUSE_MS = 120

interface DirectoryProps {
  label: string
  hint: string
  error: string | undefined
  value: string
  onValue: (value: string) => void
}

/** A path, completed from the directories that this gateway allows. */
export function Directory({ label, hint, error, value, onValue }: DirectoryProps) {
  const offers = useSignal<readonly string[]>([])
  const list = useId()
  /** Nobody has typed. What somebody empties stays empty. */
  const isUntouched = useRef(value === '')
  const input = useRef<HTMLInputElement>(null)
  const filledIn = useRef<string | undefined>(undefined)
  // in the frame in which it is filled in: whoever types, or pastes, just then takes its place, and does not go on behind it
  useLayoutEffect(() => {
    if (value === filledIn.current && document.activeElement === input.current) input.current?.select()
    filledIn.current = undefined
  }, [value])
  useEffect(() => {
    const aborter = new AbortController()
    const timer = setTimeout(async () => {
      try {
        const { directories } = await client.directories({ prefix: value, signal: aborter.signal })
        offers.value = directories
        // the one place there is
        const [only] = directories
        if (isUntouched.current && value === '' && only !== undefined && directories.length === 1) {
          filledIn.current = only
          onValue(only)
        }
        isUntouched.current = false
      } catch {
        // typing it out works all the same
      }
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      aborter.abort()
    }
  }, [value])
  return (
    <Field label={label} hint={hint} error={error}>
      {(given) => (
        <>
          <input
            {...given}
            ref={input}
            list={list}
            required
            spellcheck={false}
            autocapitalize="off"
            value={value}
            onInput={(event) => {
              isUntouched.current = false
              onValue(event.currentTarget.value)
            }}
          />
          <datalist id={list}>
            {offers.value.map((path) => (
              <option key={path} value={path} />
            ))}
          </datalist>
        </>
      )}
    </Field>
  )
}
