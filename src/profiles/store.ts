import type { StoredProfile } from '../../schemas/profiles.js'
import type { KeptKey } from '../idempotency/store.js'

/**
 * Where managed profiles are kept. The gateway reads the list once, when it starts to listen, and serialises what it writes; each
 * method may be sync or async, and has done its work for good when it returns or resolves. `profileStoreConformance` says the rest.
 */
export interface ProfileStore {
  list(): StoredProfile[] | Promise<StoredProfile[]>
  /**
   * Creates or replaces the profile of that name.
   * @param key of the request that creates it; a part of a `GatewayStorage` keeps it in the same write
   */
  save(profile: StoredProfile, key?: KeptKey): void | Promise<void>
  /** As `save`, of a name that is free. @returns false: it is taken, and nothing was done */
  create?(profile: StoredProfile, key?: KeptKey): boolean | Promise<boolean>
  /** As `save`, where exactly that is stored. @returns false: it is not, and nothing was done */
  replace?(profile: StoredProfile, before: StoredProfile): boolean | Promise<boolean>
  /** A name that is not there is no error. */
  delete(name: string): void | Promise<void>
  /** Another one after every change, by whichever process. Absent: one process has the store. */
  version?(): number | Promise<number>
  /** Gives back what the store holds on to; called when the gateway closes. */
  close?(): void | Promise<void>
}
