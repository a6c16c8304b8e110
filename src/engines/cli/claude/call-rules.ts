import { join } from 'node:path'
import type { PermissionMode } from '../../../../schemas/permissions.js'
import { configDirOf } from '../environment.js'
import type { AgentSetup } from '../launch.js'
import { isCertainToAsk } from './certain-asks.js'
import type { GateOptions } from './gate.js'
import { settingSourcesOf } from './options.js'
import { guardPlan } from './plan-mode.js'

/** What is decided about a call before the agent's own rules. */
export function callRules(
  { config, row, env, trusted }: AgentSetup,
  mode: () => PermissionMode,
): Pick<GateOptions, 'guard' | 'isPatientAsk'> {
  const configDir = configDirOf(row, env)
  const plans = configDir && join(configDir, 'plans')
  const isPatient = (config.approvalTimeoutMs ?? config.defaultApprovalTimeoutMs) === 0
  const places = {
    ...{ cwd: config.cwd, configDir, settingSources: settingSourcesOf(config, trusted) },
    rules: [...(config.allowedTools ?? []), ...(config.disallowedTools ?? [])],
  }
  return {
    guard: (call) => (mode() === 'plan' ? guardPlan(call, plans) : {}),
    isPatientAsk: async (call) => isPatient && (await isCertainToAsk(call, mode(), places)),
  }
}
