import type { StoredProfile } from '../../../schemas/profiles.js'
import type { KeptKey } from '../../idempotency/store.js'
import type { ProfileStore } from '../../profiles/store.js'

/** Keeps managed profiles for as long as the process runs. */
export function createMemoryProfileStore({ onKey }: { onKey?: (key: KeptKey) => void } = {}): ProfileStore {
  const profiles = new Map<string, StoredProfile>()
  return {
    list: () => [...profiles.values()].map((profile) => structuredClone(profile)),
    save: (profile, key) => {
      profiles.set(profile.name, structuredClone(profile))
      if (key) onKey?.(key)
    },
    delete: (name) => void profiles.delete(name),
  }
}
