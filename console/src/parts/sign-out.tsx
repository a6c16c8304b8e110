import { useSignal } from '@preact/signals'
import { signOut } from '../state/me.js'
import { texts } from '../texts.js'
import { Failure } from './notice.js'

/** Ends the sign-in of this browser; while the gateway does not know of it, it has not ended. */
export function SignOut({ class: name }: { class?: string }) {
  const error = useSignal<unknown>(undefined)
  const end = async (): Promise<void> => {
    error.value = undefined
    try {
      await signOut()
    } catch (failure) {
      error.value = failure
    }
  }
  return (
    <>
      <button type="button" class={name} onClick={() => void end()}>
        {texts.shell.signOut}
      </button>
      {error.value !== undefined && <Failure error={error.value} />}
    </>
  )
}
