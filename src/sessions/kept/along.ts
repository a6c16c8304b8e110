import type { PlannedNotification } from '../../notifications/planned.js'
import type { JournalWrite } from './journal.js'

/** What a write keeps of what is told of its events. */
export function along(
  told: readonly PlannedNotification[],
): Pick<Required<JournalWrite>, 'deliveries' | 'notifications' | 'usage'> {
  const kept = told.map((planned) => planned.write())
  return {
    deliveries: kept.flatMap(({ deliveries }) => deliveries),
    notifications: kept.flatMap(({ notification }) => notification ?? []),
    usage: kept.flatMap(({ usage }) => usage ?? []),
  }
}
