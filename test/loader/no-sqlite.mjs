/** Lets a daemon find no SQLite: as on Node 20 without optional dependencies. */
import { register } from 'node:module'
import './no-built-in-sqlite.mjs'

register(
  `data:text/javascript,${encodeURIComponent(
    `const missing = () => Promise.reject(Object.assign(new Error('It is not installed.'), { code: 'ERR_MODULE_NOT_FOUND' }))
     export const resolve = (name, context, next) =>
       name === '@photostructure/sqlite' ? missing() : next(name, context)`,
  )}`,
)
