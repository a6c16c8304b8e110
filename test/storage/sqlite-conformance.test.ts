import { databaseConforms } from './database-conforms.js'
import { sqliteWorld } from './sqlite-world.js'

databaseConforms(sqliteWorld)
