import { databaseConforms } from './database-conforms.js'
import { hasPostgres, postgresWorld } from './postgres-world.js'

if (hasPostgres()) databaseConforms((t, options) => postgresWorld(t, { ...options, shared: true }))
