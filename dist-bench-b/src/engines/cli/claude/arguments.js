import { invalidField } from '../../../errors.js';
/** What Linux takes for one argument, 128 KiB, without the name of the option and the end. */
const MAX_BYTES = 128 * 1024 - 64;
/**
 * Refuses what cannot stand on a command line: a later start would fail for it, and for what was chosen meanwhile every one after it.
 * @param command the executable, when it is not the SDK's own
 * @throws SG_ERR_VALIDATION naming the field
 */
export function assertSayable(said, command) {
    const texts = {
        model: said.model,
        resume: said.resume,
        allowedTools: said.allowedTools?.join(),
        disallowedTools: said.disallowedTools?.join(),
        mcpServers: command !== undefined && said.mcpServers ? JSON.stringify(said.mcpServers) : undefined,
    };
    for (const [field, text] of Object.entries(texts)) {
        if (text?.includes('\0'))
            throw invalidField(field, 'must hold no NUL character.');
        if (text !== undefined && Buffer.byteLength(text) > MAX_BYTES)
            throw invalidField(field, `is too long for the claude agent, which takes ${MAX_BYTES} bytes of it in all.`);
    }
}
//# sourceMappingURL=arguments.js.map