import type { StoredProfile } from '../../../schemas/profiles.js'
import type { ProfileStore } from '../../profiles/store.js'

/** Keeps managed profiles for as long as the process runs. */
export function createMemoryProfileStore(): ProfileStore {
  const profiles = new Map<string, StoredProfile>()
  return {
    list: () => [...profiles.values()].map((profile) => structuredClone(profile)),
    save: (profile) => void profiles.set(profile.name, structuredClone(profile)),
    delete: (name) => void profiles.delete(name),
  }
}
