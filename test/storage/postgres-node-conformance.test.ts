import { clusterWorld } from './cluster-world.js'
import { databaseConforms } from './database-conforms.js'
import { hasPostgres } from './postgres-world.js'

/** Longer than any test. */
const LONG_MS = 600_000

if (hasPostgres())
  databaseConforms(async (t, options) => {
    const world = await clusterWorld(t, options)
    const opened = async () => (await world.node('a', LONG_MS)).storage as never
    const found = {
      storage: await opened(),
      async reopen() {
        await (found.storage as { close(): Promise<void> }).close()
        found.storage = await opened()
        return found.storage
      },
    }
    return found
  })
