import { optionError } from '../errors.js'
import type { GatewayStorage } from './storage.js'

/** Databases that one gateway at a time may have, and which one has it; by their journal, which a copy of the storage has, too. */
const databases = new WeakMap<object, object | undefined>()

/** Says of a storage that two gateways would write over each other in it. What a host's own storage allows is the host's to say. */
export function forOneGateway<Storage extends GatewayStorage>(storage: Storage): Storage {
  databases.set(storage.journal, undefined)
  return storage
}

/** @throws SG_ERR_OPTION when another gateway of this process has it */
export function take({ journal }: GatewayStorage, gateway: object): void {
  if (isOfAnother({ journal }, gateway))
    throw optionError(
      'storage',
      'another gateway of this process has it: give each one a storage of its own, or close the other one first.',
    )
  if (databases.has(journal)) databases.set(journal, gateway)
}

/** Whether a storage is not this gateway's to close. */
export function isOfAnother({ journal }: Pick<GatewayStorage, 'journal'>, gateway: object): boolean {
  const holder = databases.get(journal)
  return holder !== undefined && holder !== gateway
}

export function giveBack({ journal }: GatewayStorage, gateway: object): void {
  if (databases.get(journal) === gateway) databases.set(journal, undefined)
}
