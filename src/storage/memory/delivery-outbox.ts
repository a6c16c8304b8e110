import type { WebhookDelivery } from '../../../schemas/jobs.js'
import {
  ATTEMPTS_PER_LANE,
  type DeliveryOutbox,
  isOfPassing,
  type KeptDelivery,
  MAX_GONE,
} from '../../webhooks/outbox.js'

const MAX_LANES = 10_000

interface Kept {
  id: string
  lane: string
  delivery: string
}

/** What the other parts of a storage in memory use of it. */
export interface MemoryDeliveryOutbox extends Required<Omit<DeliveryOutbox, 'isHeldUp'>> {
  /** Keeps a delivery in the same turn in which what it tells of is written. */
  addNow(kept: KeptDelivery): void
}

/**
 * Keeps deliveries for as long as the process runs; a second gateway that is built on the same object makes what the first one left.
 * Of the lanes with attempts, those that heard nothing for the longest time are forgotten first, beyond ten thousand.
 */
export function createMemoryDeliveryOutbox(): MemoryDeliveryOutbox {
  const kept = new Map<string, Kept>()
  const lanes = new Map<string, WebhookDelivery[]>()
  const gone = new Set<string>()
  const keyOf = (lane: string, id: string) => JSON.stringify([lane, id])
  const addNow = ({ id, lane, delivery }: KeptDelivery) => {
    const key = keyOf(lane, id)
    if (!kept.has(key)) kept.set(key, { id, lane, delivery: JSON.stringify(delivery) })
  }

  return {
    addNow,
    async add(delivery) {
      addNow(delivery)
    },
    async change({ id, lane, delivery }) {
      const key = keyOf(lane, id)
      if (kept.has(key)) kept.set(key, { id, lane, delivery: JSON.stringify(delivery) })
    },
    async remove(lane, id) {
      kept.delete(keyOf(lane, id))
    },
    async list() {
      return [...kept.values()].map((one): KeptDelivery => ({ ...one, delivery: JSON.parse(one.delivery) }))
    },
    async log(lane, attempt) {
      const attempts = lanes.get(lane) ?? []
      attempts.push({ ...attempt })
      if (attempts.length > ATTEMPTS_PER_LANE) attempts.shift()
      lanes.delete(lane)
      lanes.set(lane, attempts)
      if (lanes.size > MAX_LANES) lanes.delete(lanes.keys().next().value!)
    },
    async attempts(lane) {
      return (lanes.get(lane) ?? []).map((attempt) => ({ ...attempt })).reverse()
    },
    async forget(lane) {
      lanes.delete(lane)
      gone.delete(lane)
    },
    async prune(before) {
      for (const [lane, attempts] of lanes) {
        if (!isOfPassing(lane)) continue
        const young = attempts.filter(({ at }) => at >= before)
        if (young.length > 0) lanes.set(lane, young)
        else lanes.delete(lane)
      }
    },
    async rememberGone(target) {
      gone.add(target)
      if (gone.size > MAX_GONE) gone.delete(gone.values().next().value!)
    },
    async gone() {
      return [...gone]
    },
  }
}
