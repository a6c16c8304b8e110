import { databaseName, databaseOf } from '../../src/daemon/database.js'
import { loadConfig } from '../../src/daemon/load-config.js'
import { ANSWER_KEY, newAnswerKey } from '../../src/notifications/answers/answer-keys.js'

/**
 * Replaces the key that answer links are signed with, in the database that a configuration names; a gateway that runs on it uses the new
 * one from its next link on.
 * @throws ConfigError when it names none · StorageError when there is no such database
 */
export async function rotateKeys(path: string): Promise<void> {
  const database = databaseOf(loadConfig(path))
  if ('sqlite' in database) {
    const { saveKeySqlite } = await import('../../src/storage/sqlite/maintenance.js')
    await saveKeySqlite(database.sqlite, ANSWER_KEY, newAnswerKey())
  } else {
    const { saveKeyPostgres } = await import('../../src/storage/postgres/maintenance.js')
    await saveKeyPostgres(database.postgres, ANSWER_KEY, newAnswerKey())
  }
  process.stdout.write(
    `ok: ${databaseName(database)} has a new key; answer links from before lead nowhere now, also on a gateway that runs\n` +
      '    whoever was told of a request that still waits can answer it by the inbox, or by the next reminder\n',
  )
}
