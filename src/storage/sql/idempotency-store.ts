import { type IdempotencyStore, REMEMBERED_MS, type StoredAnswer } from '../../idempotency/store.js'
import { parsed } from './json-columns.js'
import type { CallDatabase } from './operations.js'
import { keptRow } from './rows.js'
import { readable } from './stores.js'

const WHAT = 'The answer to the idempotency key'

interface Taken {
  fingerprint: string
  since: number
  /** It could not be written down. */
  answer?: StoredAnswer
}

/**
 * Which keys are taken, this process knows; the database knows those that have an answer, or something that was made. So a request whose
 * end cannot be written down leaves no key behind that nobody can use. Where several processes have the database, it knows too which of
 * them has a key, until that one is gone.
 */
export function idempotencyStore(call: CallDatabase, now: () => number): IdempotencyStore {
  /** In the order in which they were taken. */
  const taken = new Map<string, Taken>()

  const forgetOld = () => {
    for (const [key, { since }] of taken) {
      if (since > now() - REMEMBERED_MS) return
      taken.delete(key)
    }
  }

  return {
    async begin(key, fingerprint) {
      const known = await call('idempotency.begin', key, fingerprint, now())
      if (known && (known.answer !== null || !taken.has(key))) {
        if (known.fingerprint !== fingerprint) return { state: 'mismatch' }
        if (known.answer === null) return { state: 'in_flight' }
        return { state: 'answered', answer: parsed(known.answer, WHAT, key, 'idempotency_keys') }
      }
      forgetOld()
      const held = taken.get(key)
      if (!held) {
        taken.set(key, { fingerprint, since: now() })
        return { state: 'new' }
      }
      if (held.fingerprint !== fingerprint) return { state: 'mismatch' }
      return held.answer ? { state: 'answered', answer: held.answer } : { state: 'in_flight' }
    },
    async complete(key, answer) {
      const held = taken.get(key)
      if (!held) return
      held.answer = answer
      await call('idempotency.complete', key, held.fingerprint, held.since, JSON.stringify(answer), now())
      taken.delete(key)
    },
    async release(key) {
      taken.delete(key)
      await call('idempotency.release', key)
    },
    keep: (key) => call('idempotency.keep', keptRow(key, now())),
    async left(keys, onUnreadable = () => {}) {
      const rows = await call('idempotency.left', keys)
      for (const { key, fingerprint, since } of rows) taken.set(key, { fingerprint, since })
      return readable(
        rows,
        ({ key, fingerprint, made }) => ({ key, fingerprint, made: parsed(made, WHAT, key, 'idempotency_keys') }),
        onUnreadable,
      )
    },
  }
}
