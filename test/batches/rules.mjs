import { runGroup } from '../loader/together.mjs'

await runGroup('rules')
