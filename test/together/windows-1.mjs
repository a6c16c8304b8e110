import { runGroup } from '../loader/together.mjs'

await runGroup('windows-1')
