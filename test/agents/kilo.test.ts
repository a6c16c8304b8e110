import { AGENTS } from './installed.js'
import { showAgent } from './show-agent.js'

showAgent(AGENTS.kilo)
