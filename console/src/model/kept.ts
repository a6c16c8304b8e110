import { type Signal, useSignal, useSignalEffect } from '@preact/signals'

const PREFIX = 'session-gateway.draft.'
const OWNER = 'session-gateway.drafts-of'

/** A browser that keeps nothing for pages is none the worse: what is written is then there until the page is left. */
function tried<T>(act: () => T): T | undefined {
  try {
    return act()
  } catch {
    return undefined
  }
}

/** What was written under this name in this window, also before it was loaded again. */
export const keptAs = <T>(name: string): T | undefined =>
  tried(() => JSON.parse(sessionStorage.getItem(PREFIX + name) ?? 'null') as T | null) ?? undefined

/** Whose it is. Absent: nobody's who could be told from another one. */
let owner: string | undefined

/** Keeps it, or nothing any more. */
export const keep = (name: string, value: unknown): void =>
  void tried(() => {
    if (value === undefined) return sessionStorage.removeItem(PREFIX + name)
    if (owner !== undefined) sessionStorage.setItem(OWNER, owner)
    sessionStorage.setItem(PREFIX + name, JSON.stringify(value))
  })

/** The values of a form, as they were filled in when the form, or the page, was left. To be forgotten once they are sent. */
export function useKeptForm<T extends object>(name: string, empty: () => T): Signal<T> {
  const values = useSignal<T>({ ...empty(), ...keptAs<T>(name) })
  const begun = useSignal(values.peek())
  useSignalEffect(() => {
    if (values.value !== begun.peek()) keep(name, values.value)
  })
  return values
}

/** What one person has begun to write is not there for another. */
export function keepFor(who: string | undefined): void {
  owner = who
  tried(() => {
    if (who !== undefined && sessionStorage.getItem(OWNER) === who) return
    for (const key of Object.keys(sessionStorage)) if (key.startsWith(PREFIX)) sessionStorage.removeItem(key)
    sessionStorage.removeItem(OWNER)
  })
}
