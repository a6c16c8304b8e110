import { type Signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { ProfileInfo } from '../../../client/index.js'
import { client } from '../api.js'
import { feedLink } from '../state/feed.js'
import { texts } from '../texts.js'
import { Failure, Underway } from './notice.js'

interface Offered {
  /** Undefined until they are there. */
  profiles: Signal<readonly ProfileInfo[] | undefined>
  error: Signal<unknown>
  /** To be awaited before what is filled in is sent. Reads them again where they could not be read. @returns whether they are there */
  listed: () => Promise<boolean>
}

/** The profiles that a form offers. A press does not overtake them: one that is made again has to ask for the same. */
export function useOffered(onListed: (profiles: readonly ProfileInfo[]) => void): Offered {
  const profiles = useSignal<readonly ProfileInfo[] | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  const listing = useRef<Promise<boolean> | undefined>(undefined)
  const aborter = useRef(new AbortController())
  const list = async (): Promise<boolean> => {
    error.value = undefined
    try {
      const answer = await client.profiles.list({ signal: aborter.current.signal })
      profiles.value = answer.profiles
      onListed(answer.profiles)
      return true
    } catch (failure) {
      error.value = failure
      listing.current = undefined
      return false
    }
  }
  const listed = (): Promise<boolean> => {
    listing.current ??= list()
    return listing.current
  }
  useEffect(() => {
    void listed()
    const off = feedLink.subscribe(({ state }) => {
      if ((state === 'live' || state === 'back') && error.peek() !== undefined) void listed()
    })
    return () => {
      off()
      aborter.current.abort()
    }
  }, [])
  return { profiles, error, listed }
}

/** Says that they are not there yet, or could not be read. */
export function OfferedState({ profiles, error, listed }: Offered) {
  if (error.value !== undefined) return <Failure error={error.value} retry={() => void listed()} />
  return profiles.value ? null : <Underway>{texts.shell.readingProfiles}</Underway>
}
