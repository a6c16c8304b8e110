import { newId } from '../../lib/new-id.js';
import { present } from '../../lib/present.js';
import { changedInput, DEFAULT_APPROVAL_TIMEOUT_MS, PendingPermissions, policyAnswer, } from './permissions.js';
/** Where an engine asks and clients answer: policy first, then what was answered while the session was parked, then a person. */
export class PermissionDesk extends PendingPermissions {
    #owner;
    /** Answers that were given while the session was parked, for the engine that asks again. */
    carried = [];
    constructor(clock, owner) {
        super(clock, {
            onResolved: (resolution) => owner.onPermissionEvent(resolvedEvent(resolution)),
            whenDurable: (then) => owner.whenDurable(() => {
                then();
                // the others may have waited for this one with their parking
                if (this.size > 0)
                    owner.onPatientRequest();
            }),
        });
        this.#owner = owner;
    }
    ask(ask) {
        const { config } = this.#owner;
        const answer = policyAnswer(ask, config.questionBehavior);
        if (answer) {
            const by = { channel: 'policy' };
            const resolution = { requestId: newId(), decision: answer, resolvedBy: 'policy', by };
            this.#owner.onPermissionEvent(resolvedEvent({ ...resolution, changedInput: changedInput(ask, answer) }));
            return Promise.resolve(answer);
        }
        return this.#askedBefore(ask.toolUseId) ?? this.#askPerson(ask, config);
    }
    #askPerson(ask, config) {
        const timeoutMs = config.approvalTimeoutMs ?? config.defaultApprovalTimeoutMs ?? DEFAULT_APPROVAL_TIMEOUT_MS;
        const { request, decision } = this.add(ask, timeoutMs);
        this.#owner.onPermissionEvent({ type: 'permission_requested', request });
        if (timeoutMs === 0)
            this.#owner.onPatientRequest();
        return decision;
    }
    #askedBefore(toolUseId) {
        const carried = this.carried.find((answer) => answer.toolUseId === toolUseId);
        if (carried) {
            this.#tell(carried);
            this.carried = this.carried.filter((answer) => answer !== carried);
            return Promise.resolve(carried.decision);
        }
        const open = this.askedAgain(toolUseId);
        if (open)
            this.#owner.onPatientRequest();
        return open;
    }
    /** Tells the answers that were given while the session was parked, each once, whether the engine asks again or not. */
    tellCarried() {
        for (const carried of this.carried)
            this.#tell(carried);
    }
    #tell(carried) {
        if (carried.told)
            return;
        carried.told = true;
        const { requestId, decision, by } = carried;
        const ran = decision.behavior === 'allow' && carried.isChanged ? decision.updatedInput : undefined;
        this.tellAnswered({ requestId, decision, by, changedInput: ran });
    }
}
function resolvedEvent({ requestId, decision, resolvedBy, by, changedInput: ran }) {
    const message = decision.behavior === 'deny' ? decision.message : undefined;
    return {
        type: 'permission_resolved',
        requestId,
        behavior: decision.behavior,
        resolvedBy,
        ...present({ by, message, updatedInput: ran }),
    };
}
//# sourceMappingURL=permission-desk.js.map