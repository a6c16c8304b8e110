import { useSignal } from '@preact/signals'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { sentenceOf } from '../api.js'
import { isUnauthorized, signIn } from '../state/me.js'
import { texts } from '../texts.js'
import { Dialog } from './dialog.js'
import { Field } from './field.js'
import { lead } from './second-press.js'

const says = texts.signIn

/** Exchanges a token for a cookie. The token leaves the field at once, and is kept nowhere. */
export function SignIn({ hasExpired = false }: { hasExpired?: boolean }) {
  const element = useRef<HTMLFormElement>(null)
  const input = useRef<HTMLInputElement>(null)
  const error = useSignal<string | undefined>(undefined)
  const isBusy = useSignal(false)
  /** By a dialog, which lets nothing else be reached: what is filled in there is not to be given up for a sign-in. */
  const isCovered = useSignal(hasExpired && document.querySelector('dialog[open]') !== null)
  useLayoutEffect(() => {
    // over what somebody is in the middle of it takes no key
    if (!hasExpired) return lead(input.current)
    const before = document.activeElement as HTMLElement | null
    return () => {
      if (!element.current?.contains(document.activeElement)) return
      const isThere = before?.isConnected && before !== document.body
      lead(isThere ? before : document.querySelector<HTMLElement>('main h1'), { preventScroll: true })
    }
  }, [])
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const token = input.current?.value.trim() ?? ''
    if (!token || isBusy.value) return
    isBusy.value = true
    error.value = undefined
    try {
      await signIn(token)
    } catch (failure) {
      error.value = isUnauthorized(failure) ? says.refused : sentenceOf(failure)
      if (input.current) {
        input.current.value = ''
        lead(input.current)
      }
    } finally {
      isBusy.value = false
    }
  }
  const form = (
    <form ref={element} class="sign-in" onSubmit={submit}>
      {hasExpired ? (
        <p role="alert">{says.expired}</p>
      ) : (
        <>
          <img src="./icon.svg" alt="" width="40" height="40" />
          <h1>{says.title}</h1>
          <p class="quiet-text">{says.lead}</p>
        </>
      )}
      <Field label={says.token} hint={says.hint} error={error.value}>
        {(given) => (
          <input {...given} ref={input} type="password" autocomplete="current-password" spellcheck={false} required />
        )}
      </Field>
      <button type="submit" class="primary" aria-disabled={isBusy.value}>
        {says.submit}
      </button>
    </form>
  )
  if (isCovered.value)
    return (
      <Dialog title={says.title} onClose={() => (isCovered.value = false)}>
        {form}
      </Dialog>
    )
  return hasExpired ? form : <main class="alone">{form}</main>
}
