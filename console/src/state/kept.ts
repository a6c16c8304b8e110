import { effect, type Signal, useSignal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'

/** At one origin there may be several gateways, each with drafts of its own in one window. No path has a space. */
const HERE = new URL('.', document.baseURI).pathname
const PREFIX = `session-gateway.draft ${HERE} `
const OWNER = `session-gateway.drafts-of ${HERE}`

/** What is there until the page is left, of one person each. */
const untilLeft: Map<string, unknown>[] = []
export function keptUntilLeft<T>(): Map<string, T> {
  const kept = new Map<string, T>()
  untilLeft.push(kept)
  return kept
}

/** What the browser keeps for no page, or is too long for it. */
const unkept = keptUntilLeft<string>()

function tried<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}

/** What was written under this name in this window, also before it was loaded again. */
export const keptAs = <T>(name: string): T | undefined =>
  tried(() => JSON.parse(unkept.get(name) ?? sessionStorage.getItem(PREFIX + name) ?? 'null') as T | null) ?? undefined

/** A choice that was made in this browser, in any window; undefined also where the browser keeps nothing. */
export const remembered = (name: string): string | undefined => tried(() => localStorage.getItem(name)) ?? undefined

export const remember = (name: string, value: string): void => void tried(() => localStorage.setItem(name, value))

/** Whose it is. Absent: nobody's who could be told from another one. */
let owner: string | undefined

let isLeft = false
/** The page goes, for another person: what still comes of the one before is not kept for them. */
export const keepNoMore = (): void => {
  isLeft = true
}

/** Keeps it, or nothing any more. */
export function keep(name: string, value: unknown): void {
  if (isLeft) return
  unkept.delete(name)
  tried(() => sessionStorage.removeItem(PREFIX + name))
  if (value === undefined) return
  const text = JSON.stringify(value)
  const isKept = tried(() => {
    if (owner !== undefined) sessionStorage.setItem(OWNER, owner)
    sessionStorage.setItem(PREFIX + name, text)
    return true
  })
  if (!isKept) unkept.set(name, text)
}

/** Runs `write` with each change of the signals that it reads, and at once: what is left before a frame was drawn is kept, too. */
export const useKeeping = (write: () => void): void => useLayoutEffect(() => effect(write), [])

/** The values of a form, as they were filled in when the form, or the page, was left. To be forgotten once they are sent. */
export function useKeptForm<T extends object>(name: string, empty: () => T): Signal<T> {
  const values = useSignal<T>({ ...empty(), ...keptAs<T>(name) })
  const begun = useSignal(values.peek())
  useKeeping(() => {
    if (values.value !== begun.peek()) keep(name, values.value)
  })
  return values
}

/** What one person has begun to write is not there for another. @param isSame whether it is known to be the one of before, under another name */
export function keepFor(who: string | undefined, isSame = false): void {
  if (who === undefined || (who !== owner && !isSame)) for (const kept of untilLeft) kept.clear()
  owner = who
  tried(() => {
    const before = sessionStorage.getItem(OWNER)
    if (who !== undefined && before !== null && isSame) sessionStorage.setItem(OWNER, who)
    if (who !== undefined && (before === who || isSame)) return
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key)
    sessionStorage.removeItem(OWNER)
  })
}
