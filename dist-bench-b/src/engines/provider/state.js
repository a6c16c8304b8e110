import { GatewayError } from '../../errors.js';
import { failure } from './tool.js';
export const ENGINE = 'provider';
export const toSnapshot = (state, saved) => ({
    engine: ENGINE,
    state: JSON.parse(JSON.stringify({ ...state, filesModifiedAt: saved.modifiedAt })),
    files: saved.files,
});
/** @throws {GatewayError} `SG_ERR_ENGINE_START` when the snapshot is not one of this engine and version */
export function fromSnapshot(snapshot) {
    const saved = structuredClone(snapshot.state);
    if (snapshot.engine !== ENGINE || saved?.version !== 1) {
        throw new GatewayError('SG_ERR_ENGINE_START', {
            detail: 'The snapshot was not made by this version of the provider engine.',
        });
    }
    const { filesModifiedAt, ...state } = saved;
    for (const call of state.turn?.work?.calls ?? []) {
        if (call.phase !== 'started')
            continue;
        // It may have had its effect, so it must not run again.
        call.phase = 'done';
        call.result = failure('The session stopped while this was running. It may or may not have taken effect.');
    }
    return { state, files: snapshot.files ?? {}, modifiedAt: filesModifiedAt };
}
//# sourceMappingURL=state.js.map