import { join } from 'node:path';
import { configDirOf } from '../environment.js';
import { isCertainToAsk } from './certain-asks.js';
import { settingSourcesOf } from './options.js';
import { guardPlan } from './permissions.js';
/** What is decided about a call before the agent's own rules. */
export function callRules({ config, row, env, trusted }, mode) {
    const configDir = configDirOf(row, env);
    const plans = configDir && join(configDir, 'plans');
    const isPatient = (config.approvalTimeoutMs ?? config.defaultApprovalTimeoutMs) === 0;
    const places = {
        ...{ cwd: config.cwd, configDir, settingSources: settingSourcesOf(config, trusted) },
        rules: [...(config.allowedTools ?? []), ...(config.disallowedTools ?? [])],
    };
    return {
        guard: (call) => (mode() === 'plan' ? guardPlan(call, plans) : {}),
        isPatientAsk: async (call) => isPatient && (await isCertainToAsk(call, mode(), places)),
    };
}
//# sourceMappingURL=call-rules.js.map