import { signal } from '@preact/signals'
import type { SessionNotification } from '../../../client/index.js'
import { client } from '../api.js'
import { keyBytes } from '../model/push-key.js'
import { go } from '../route.js'
import { texts } from '../texts.js'
import { remember, remembered } from './kept.js'

export type Told = SessionNotification['type']
export const TOLD: readonly Told[] = ['permission_requested', 'turn_completed', 'session_error', 'session_closed']

/** `denied`: this browser lets nobody ask. */
export type PushState = 'asking' | 'unsupported' | 'denied' | 'off' | 'on'

export const pushState = signal<PushState>('asking')

/** No page is under it: the worker gets messages, and controls nothing. */
const SCOPE = './push/'

/**
 * The one address of a script that this page ever makes. It names the events of which the worker is to be told where the browser subscribes
 * anew by itself.
 */
function workerAddress(events: readonly Told[]): string {
  const addressFor = (events: string) =>
    new URL(`./push-worker.js?events=${encodeURIComponent(events)}`, document.baseURI).href
  const { trustedTypes } = globalThis as { trustedTypes?: { createPolicy: (name: string, rules: object) => Policy } }
  policy ??= trustedTypes?.createPolicy('console', { createScriptURL: addressFor })
  const told = events.join()
  return (policy?.createScriptURL(told) ?? addressFor(told)) as string
}
interface Policy {
  createScriptURL(text: string): unknown
}
let policy: Policy | undefined

const isSupported = (): boolean =>
  'serviceWorker' in navigator && 'PushManager' in globalThis && 'Notification' in globalThis

const subscription = async (): Promise<PushSubscription | undefined> => {
  const registration = await navigator.serviceWorker.getRegistration(new URL(SCOPE, document.baseURI).href)
  return (await registration?.pushManager.getSubscription()) ?? undefined
}

export async function lookAtPush(): Promise<void> {
  if (!isSupported()) pushState.value = 'unsupported'
  else if (Notification.permission === 'denied') pushState.value = 'denied'
  else pushState.value = (await subscription().catch(() => undefined)) ? 'on' : 'off'
}

/** At one origin there may be several gateways, which know a person by other names. */
const HERE = new URL(SCOPE, document.baseURI).pathname
/** What was chosen, for when it is renewed: the gateway does not tell. */
const KEPT = `push-events ${HERE}`
/** By whom. */
const CHOSEN_BY = `push-of ${HERE}`

const chosen = (): Told[] => TOLD.filter((type) => (remembered(KEPT) ?? '').split(',').includes(type))

/** What this person has chosen here before; nothing where that is not known. */
export const chosenBy = (name = ''): Told[] => (remembered(CHOSEN_BY) === name ? chosen() : [])

/**
 * A subscription ends when it is not made anew for long: the console does so whenever it is opened. Nobody is asked anything: one that
 * somebody else has made, whose sign-in ended by itself, is ended.
 * @param name of who is in
 */
export async function renewPush(name = ''): Promise<void> {
  if (!isSupported() || Notification.permission !== 'granted') return
  const known = await subscription().catch(() => undefined)
  // one of an earlier console says nothing of whose it is
  if (known && (remembered(CHOSEN_BY) ?? name) !== name) return turnPushOff().catch(() => {})
  const events = chosen()
  if (!known) return
  remember(CHOSEN_BY, name)
  // by a browser that has not kept what was chosen it is not made to tell nothing
  await client.notifications.subscribe(known, events.length > 0 ? { events } : {}).catch(() => {})
}

/** Asks the person, subscribes the browser, and tells the gateway. @throws what the browser or the gateway refuses */
export async function turnPushOn(events: readonly Told[], name = ''): Promise<void> {
  const permission = await Notification.requestPermission()
  if (permission !== 'granted') {
    await lookAtPush()
    // whoever has refused it is told so for as long as that is so
    if (permission === 'default') throw new Error(texts.settings.pushNotAllowed)
    return
  }
  const publicKey = await client.notifications.vapidKey()
  const registration = await navigator.serviceWorker.register(workerAddress(events), {
    scope: SCOPE,
    updateViaCache: 'none',
  })
  await activated(registration)
  const before = await registration.pushManager.getSubscription()
  // one of another key is of no use to this gateway
  await before?.unsubscribe()
  const made = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey: keyBytes(publicKey),
  })
  try {
    await client.notifications.subscribe(made, { events: [...events] })
    remember(KEPT, events.join())
    remember(CHOSEN_BY, name)
  } catch (error) {
    await made.unsubscribe()
    // somebody may have come back to the window meanwhile, which looks, too
    await lookAtPush()
    throw error
  }
  await lookAtPush()
}

/** Of this scope no page is ready: `serviceWorker.ready` would wait for ever. @throws where the browser has thrown the worker away */
async function activated({ installing, waiting, active }: ServiceWorkerRegistration): Promise<void> {
  const worker = installing ?? waiting
  if (active || !worker) return
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      if (worker.state === 'activated') resolve()
      else if (worker.state === 'redundant') reject(new Error(texts.settings.pushWorkerGone))
    }
    worker.addEventListener('statechange', look)
    look()
  })
}

export async function turnPushOff(): Promise<void> {
  const known = await subscription()
  if (known) {
    await client.notifications.unsubscribe(known).catch(() => {
      // it ends by itself when the browser takes nothing more
    })
    await known.unsubscribe()
  }
  await lookAtPush()
}

/** A press on a notification leads to a place in a window that is open. @returns a function that ends it */
export function followPresses(): () => void {
  if (!('serviceWorker' in navigator)) return () => {}
  const onMessage = ({ data }: MessageEvent<{ go?: unknown } | null>): void => {
    if (typeof data?.go === 'string' && data.go.startsWith('#/')) go(data.go)
  }
  navigator.serviceWorker.addEventListener('message', onMessage)
  navigator.serviceWorker.startMessages()
  return () => navigator.serviceWorker.removeEventListener('message', onMessage)
}
