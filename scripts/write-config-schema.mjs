// Writes dist/gateway.schema.json, which editors complete gateway.json with. Runs after tsc, on what tsc wrote.
import { writeFileSync } from 'node:fs'
import { publishedConfigSchema } from '../dist/src/daemon/config-schema.js'

const target = new URL('../dist/gateway.schema.json', import.meta.url)
writeFileSync(target, `${JSON.stringify(publishedConfigSchema(), undefined, 2)}\n`)
