import { AGENTS } from './installed.js'
import { showDurable } from './show-durable.js'

showDurable(AGENTS.claude, ['deploy'])
