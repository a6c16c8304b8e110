import { signal } from '@preact/signals'
import { GatewayError } from '../../../client/index.js'
import { apiBase, request } from '../api.js'

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

export const isUnauthorized = (error: unknown): boolean => error instanceof GatewayError && error.status === 401

/** Asks who we are. What is shown stays when nobody answers: the feed says that, and asks again. */
export async function findOut(): Promise<void> {
  // asked by whoever met the end of it: the first of them says what it was
  const out = (): Access =>
    access.value.state === 'out' ? access.value : { state: 'out', hasExpired: access.value.state === 'in' }
  try {
    const me = await request<Me>('GET', '/console/me')
    access.value = me.authenticated ? { state: 'in', me } : out()
  } catch (error) {
    if (isUnauthorized(error)) access.value = out()
    else if (access.value.state !== 'in') access.value = { state: 'unreachable', error }
  }
}

/** The cookie goes to the API alone, wherever a proxy has put it. */
export async function signIn(token: string): Promise<void> {
  await request('POST', '/console/sessions', { body: { token, path: new URL(apiBase).pathname } })
  await findOut()
}

export async function signOut(): Promise<void> {
  const now = access.value
  const id = now.state === 'in' ? now.me.signIn?.id : undefined
  if (id !== undefined) await request('DELETE', `/console/sessions/${encodeURIComponent(id)}`)
  access.value = { state: 'out', hasExpired: false }
}

/** To be called with every failure: one that says that we are not let in any more asks for the sign-in. */
export function noteFailure(error: unknown): void {
  if (isUnauthorized(error) && access.value.state === 'in') access.value = { state: 'out', hasExpired: true }
}
