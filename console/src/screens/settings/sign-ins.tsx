import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { GatewayError } from '../../../../client/index.js'
import { request } from '../../api.js'
import { browserOf } from '../../model/browser.js'
import { Failure } from '../../parts/notice.js'
import { lead } from '../../parts/second-press.js'
import { exactly, Time } from '../../parts/time.js'
import { unhurry } from '../../parts/unhurried.js'
import { Line } from '../../parts/untrusted.js'
import { signOut } from '../../state/me.js'
import { Rereading } from '../../state/reread.js'
import { texts } from '../../texts.js'

const says = texts.settings

/** What `GET /console/sessions` lists. */
interface SignIn {
  id: string
  createdAt: number
  lastSeenAt: number
  expiresAt: number
  userAgent?: string
  current?: true
  /** It has ended by itself, and its browser is told by web push still. */
  isOver?: true
}

/** One that has ended by itself, or from elsewhere, is as it should be. */
function hadEnded(error: unknown): void {
  if (!(error instanceof GatewayError && error.status === 404)) throw error
}

/** Where somebody is signed in, each to be ended. */
export function SignIns() {
  const all = useSignal<readonly SignIn[]>([])
  /** Why they could not be read. */
  const unread = useSignal<unknown>(undefined)
  /** The one that could not be ended, and why. */
  const unended = useSignal<{ signIn: SignIn; error: unknown } | undefined>(undefined)
  /** How often they were read: an answer from before says nothing of what was ended since. */
  const reads = useRef(0)
  const read = async (): Promise<void> => {
    const mine = ++reads.current
    try {
      const listed = await request<SignIn[]>('GET', '/console/sessions')
      if (mine !== reads.current) return
      all.value = listed
      unread.value = undefined
      // it has ended after all
      if (!listed.some(({ id }) => id === unended.value?.signIn.id)) unended.value = undefined
    } catch (failure) {
      if (mine === reads.current) unread.value = failure
    }
  }
  useEffect(() => new Rereading(read).followLooks(), [])
  const end = async (signIn: SignIn): Promise<void> => {
    try {
      if (signIn.current) await signOut()
      else await request('DELETE', `/console/sessions/${encodeURIComponent(signIn.id)}`).catch(hadEnded)
      unended.value = undefined
    } catch (error) {
      unended.value = { signIn, error }
      return
    }
    if (!signIn.current) await read()
  }
  const again = (): void => void (unended.value ? end(unended.value.signIn) : read())
  const error = unended.value?.error ?? unread.value
  const section = useRef<HTMLElement>(null)
  const isInside = section.current?.contains(document.activeElement) === true
  useLayoutEffect(() => {
    // what it was on went with its row
    if (isInside && document.activeElement === document.body) lead(section.current?.querySelector('h2'))
  }, [all.value])
  // a row that has moved up takes no press that was meant for the one that went
  useLayoutEffect(() => {
    for (const button of section.current?.querySelectorAll('li > button') ?? []) unhurry(button)
  }, [all.value.map(({ id }) => id).join()])
  return (
    <section ref={section}>
      <h2 tabIndex={-1}>{says.signIns}</h2>
      <p class="quiet-text">{says.signInsLead}</p>
      <ul class="states">
        {all.value.map((signIn) => {
          const name = browserOf(signIn.userAgent ?? '') ?? says.unknownBrowser
          // of two browsers of one kind it says which
          const which = signIn.current ? says.thisOne : says.signedInAt(exactly(signIn.createdAt) ?? '')
          return (
            <li key={signIn.id} class="sign-in-row">
              <span class="strong" title={signIn.userAgent}>
                <Line text={name} /> {signIn.current && <span class="tag">{says.thisOne}</span>}
              </span>
              <button type="button" aria-label={says.revokeThat(name, which)} onClick={() => void end(signIn)}>
                {says.revoke}
              </button>
              <span class="state-more">
                {says.lastSeen} <Time at={signIn.lastSeenAt} />,{' '}
                {signIn.isOver ? (
                  says.isOver
                ) : (
                  <>
                    {says.ends} <Time at={signIn.expiresAt} />
                  </>
                )}
              </span>
            </li>
          )
        })}
      </ul>
      {/* below them: they stay where they are under a second press */}
      {error !== undefined && <Failure error={error} retry={again} />}
    </section>
  )
}
