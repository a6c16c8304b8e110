import type { KeptSignIn, SignInStore } from '../../console/store.js'

/** Keeps sign-ins for as long as the process runs. */
export function createMemorySignInStore(): SignInStore {
  const kept = new Map<string, string>()
  return {
    async list() {
      return [...kept.values()].map((text): KeptSignIn => JSON.parse(text))
    },
    async save(signIn) {
      kept.set(signIn.id, JSON.stringify(signIn))
    },
    async renew(signIn) {
      if (kept.has(signIn.id)) kept.set(signIn.id, JSON.stringify(signIn))
    },
    async remove(id) {
      kept.delete(id)
    },
  }
}
