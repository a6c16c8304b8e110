import { runGroup } from '../loader/together.mjs'

await runGroup('browsers-2')
