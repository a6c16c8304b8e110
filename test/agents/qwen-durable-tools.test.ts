import { AGENTS } from './installed.js'
import { showDurable } from './show-durable.js'

showDurable(AGENTS.qwen, ['deploy'])
