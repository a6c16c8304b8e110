// npm runs this after `npm ci` in a checkout, where `npm start` builds, and in the clone that it makes when somebody installs from git:
// there nothing else builds.
import { realpathSync } from 'node:fs'

const installedInto = process.env.INIT_CWD
if (installedInto !== undefined && realpathSync(installedInto) !== realpathSync(process.cwd()))
  await import('./build-package.mjs')
