import { computed, signal } from '@preact/signals'
import { GatewayError, UNREACHABLE } from '../../../client/index.js'
import { apiBase, request, strange, whenSignedOut } from '../api.js'
import { texts } from '../texts.js'
import { keepFor, keepNoMore } from './kept.js'
import { turnPushOff } from './push.js'

/** What `GET /console/me` tells: who is asking, and what this gateway has. */
export interface Me {
  /** Whether the gateway asks for credentials at all. */
  required: boolean
  /** Whether the caller is let in. */
  authenticated: boolean
  caller?: { name?: string; allowedProfiles?: string[]; canManageProfiles: boolean; isLimited: boolean }
  signIn?: { id: string; expiresAt: number }
  features?: { queue: boolean; profileStore: boolean; webPush: boolean }
}

/** `hasExpired`: was signed in, and is not any more; what is shown stays readable. */
export type Access =
  | { state: 'asking' }
  | { state: 'in'; me: Me }
  | { state: 'out'; hasExpired: boolean }
  | { state: 'unreachable'; error: unknown }

export const access = signal<Access>({ state: 'asking' })

/** Another one with each sign-in, undefined while nobody is in: what follows a stream begins anew with it. */
export const signedIn = computed(() => {
  const now = access.value
  return now.state === 'in' ? (now.me.signIn?.id ?? '') : undefined
})

/** How often somebody has come in: what was asked before that says nothing of who is in now. */
let entries = 0

whenSignedOut(() => {
  const asked = entries
  return () => {
    if (access.value.state === 'in' && asked === entries) access.value = { state: 'out', hasExpired: true }
  }
})

// in another window of this browser somebody may have signed in, also in one that stands beside this one
const look = (): void => {
  if (!document.hidden && access.value.state === 'out') void findOut()
}
document.addEventListener('visibilitychange', look)
addEventListener('focus', look)

/** What a stream ends with that is followed for nobody any more. */
export const NOBODY = new GatewayError(texts.shell.connection.signedOut, {
  status: 401,
  code: 'SG_ERR_UNAUTHENTICATED',
})

/** Whether the gateway says so, and not something that stands between. */
export const isUnauthorized = (error: unknown): boolean =>
  error instanceof GatewayError && error.status === 401 && error.code !== UNREACHABLE

/** Asks who we are. What is shown stays when nobody answers, also to nobody who is signed in: the feed says that, and asks again. */
export async function findOut(): Promise<void> {
  const asked = entries
  // asked by whoever met the end of it: the first of them says what it was
  const out = (): void => {
    const { state } = access.value
    if (state !== 'out' && asked === entries) access.value = { state: 'out', hasExpired: state === 'in' }
  }
  try {
    const me = await whoIsIn()
    if (me.authenticated) letIn(me)
    else out()
  } catch (error) {
    const { state } = access.value
    if (isUnauthorized(error)) out()
    else if (state === 'asking' || state === 'unreachable') access.value = { state: 'unreachable', error }
  }
}

/** At first, and at most, before it is asked again who is in. */
const FIRST_MS = 1_000
const CAP_MS = 30_000

/** Asks again, ever less often; at once when the device is online again or somebody comes back to the window. @returns a function that ends it */
export function keepAsking(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isOver = false
  let tries = 0
  const wait = (): void => {
    const now = access.value
    if (isOver || now.state !== 'unreachable') return
    const toldMs = (now.error instanceof GatewayError && now.error.retryAfterMs) || 0
    // the windows of many come back one after the other
    const spreadMs = (0.5 + Math.random() / 2) * Math.min(CAP_MS, FIRST_MS * 2 ** Math.min(tries++, 16))
    timer = setTimeout(ask, Math.min(CAP_MS, Math.max(toldMs, spreadMs)))
  }
  const ask = (): void => {
    timer = undefined
    void findOut().then(wait)
  }
  const hurry = (): void => {
    // one that is under way is waited for
    if (document.hidden || timer === undefined) return
    clearTimeout(timer)
    ask()
  }
  wait()
  addEventListener('online', hurry)
  document.addEventListener('visibilitychange', hurry)
  return () => {
    isOver = true
    clearTimeout(timer)
    removeEventListener('online', hurry)
    document.removeEventListener('visibilitychange', hurry)
  }
}

async function whoIsIn(): Promise<Me> {
  const me = await request<Me | undefined>('GET', '/console/me')
  // a page of something else in JSON says of nobody that they are out
  if (typeof me?.authenticated !== 'boolean') throw strange()
  return me
}

/** Whom this page has shown something to, and by which sign-in that was. */
let shownTo: string | undefined
let shownBy: string | undefined

/** Whose drafts are kept in this window, whatever they may see by now; undefined: of a host's callers who have no names nobody knows. */
function ownerOf({ required, caller, signIn }: Me): string | undefined {
  const isKnown = !required || caller?.name !== undefined
  return isKnown || signIn ? JSON.stringify(isKnown ? { name: caller?.name } : signIn!.id) : undefined
}

/** What one person has seen is not left for another: the page begins anew. Of one sign-in it is one person, who may see other things by now. */
function letIn(me: Me): void {
  const who = JSON.stringify(me.caller ?? null)
  const owner = ownerOf(me)
  const isSame = me.signIn !== undefined && me.signIn.id === shownBy
  if (owner !== undefined || shownTo === undefined) keepFor(owner, isSame)
  if (access.value.state !== 'in') entries++
  if (shownTo === undefined || shownTo === who || isSame) access.value = { state: 'in', me }
  else {
    keepNoMore()
    location.reload()
  }
  shownTo = who
  shownBy = me.signIn?.id
}

/** The cookie goes to the API alone, wherever a proxy has put it. */
const PATH = new URL(apiBase).pathname

export async function signIn(token: string): Promise<void> {
  await request('POST', '/console/sessions', { body: { token, path: PATH } })
  const me = await whoIsIn()
  // as where it is for https alone, and the page came by http
  if (!me.authenticated) throw new Error(texts.signIn.notKept)
  letIn(me)
}

export async function signOut(): Promise<void> {
  const now = access.value
  const id = now.state === 'in' ? now.me.signIn?.id : undefined
  if (id !== undefined) {
    // whoever uses this browser next is not to be told what concerns this person; a browser that cannot be told anything has nothing to end
    await turnPushOff().catch(() => {})
    await request('DELETE', `/console/sessions/${encodeURIComponent(id)}`, { query: { path: PATH } }).catch((error) => {
      // it has ended already
      if (!isUnauthorized(error)) throw error
    })
  }
  if (id !== undefined) windows?.postMessage('')
  forget()
}

/** What was shown, and begun: the page begins anew, for nobody. */
function forget(): void {
  keepFor(undefined)
  keepNoMore()
  access.value = { state: 'out', hasExpired: false }
  location.reload()
}

/**
 * Windows of this browser, which have one cookie for this gateway, tell each other that somebody has signed out, whatever sign-in they show.
 * There is none where the browser keeps nothing for this page, and no cookie either.
 */
const windows = channel(`session-gateway.signed-out ${PATH}`)
windows?.addEventListener('message', () => {
  if (shownBy !== undefined) forget()
})

function channel(name: string): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(name)
  } catch {
    return undefined
  }
}

/** To be called with what a stream ended with: one that ended because nobody is signed in asks for the sign-in. */
export async function noteEnd(error: unknown): Promise<void> {
  if (isUnauthorized(error)) await findOut()
}
