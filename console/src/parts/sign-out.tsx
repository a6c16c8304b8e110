import { useSignal } from '@preact/signals'
import { signOut } from '../state/me.js'
import { texts } from '../texts.js'
import { Failure, Underway } from './notice.js'

/** Ends the sign-in of this browser; while the gateway does not know of it, it has not ended. */
export function SignOut({ class: name }: { class?: string }) {
  const error = useSignal<unknown>(undefined)
  const isBusy = useSignal(false)
  const end = async (): Promise<void> => {
    if (isBusy.value) return
    isBusy.value = true
    error.value = undefined
    try {
      await signOut()
    } catch (failure) {
      error.value = failure
    } finally {
      isBusy.value = false
    }
  }
  return (
    <>
      <button type="button" class={name} onClick={() => void end()}>
        {texts.shell.signOut}
      </button>
      {isBusy.value && <Underway />}
      {error.value !== undefined && <Failure error={error.value} />}
    </>
  )
}
