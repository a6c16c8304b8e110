import { runFolders } from './many.mjs'

await runFolders(['.', 'plugins', 'profiles', 'daemon'])
