/** Lets a daemon find no SQLite: as on Node 20 without optional dependencies. */
import { register } from 'node:module'

const { getBuiltinModule } = process
process.getBuiltinModule = (name) => (name === 'node:sqlite' ? undefined : getBuiltinModule(name))
register(
  `data:text/javascript,${encodeURIComponent(
    `export const resolve = (name, context, next) =>
       name === '@photostructure/sqlite' ? Promise.reject(new Error('It is not installed.')) : next(name, context)`,
  )}`,
)
