import { AGENTS } from './installed.js'
import { showUntrusted } from './show-untrusted.js'

for (const agent of Object.values(AGENTS)) showUntrusted(agent)
