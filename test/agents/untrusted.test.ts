import { agentTable } from '../../src/engines/cli/agent-table.js'
import { AGENTS, type AgentUnderTest } from './installed.js'
import { showUntrusted } from './show-untrusted.js'

// those of which it is said that they cannot be kept from it are not shown
for (const agent of Object.values(AGENTS) as AgentUnderTest[])
  if (agentTable([agent.declaration]).get(agent.name)?.untrusted) showUntrusted(agent)
