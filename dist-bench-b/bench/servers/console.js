import { tmpdir } from 'node:os';
import { createWorkerServer } from '../../src/server.js';
import { ScriptedEngine } from '../../test/fixtures/scripted-engine.js';
import { answer } from '../lib/child.js';
/** The gateway with its console, open to everybody, on an engine that says what it is told to. */
const engine = new ScriptedEngine();
const worker = createWorkerServer({
    allowUnauthenticated: true,
    console: true,
    profiles: [{ name: 'bench', engine: 'provider', provider: { id: 'bench' } }],
    createEngineRunner: engine.create,
    eventLog: { maxEvents: 1_000_000, maxBytes: 2 ** 30 },
});
const { url } = await worker.listen(0);
const FILE = Array.from({ length: 60 }, (_, line) => `  export const value${line} = compute(${line}) // as before`);
const edit = (n) => ({
    file_path: `src/file-${n}.ts`,
    old_string: FILE.join('\n'),
    new_string: FILE.map((line, at) => (at % 4 === 0 ? `${line}, and changed in ${n}` : line)).join('\n'),
});
const LONG = [
    '## What changed',
    ...Array.from({ length: 12 }, (_, at) => `${at + 1}. The **value** of \`value${at}\` is computed anew, see [the list](https://x.example/${at}).`),
    '| value | before | after |\n|---|---|---|',
    ...Array.from({ length: 12 }, (_, at) => `| value${at} | ${at} | ${at * 2} |`),
    `\`\`\`ts\n${FILE.slice(0, 30).join('\n')}\n\`\`\``,
].join('\n');
/** What agents say: a sentence or two, a call, its output; every tenth call is an edit, and every fifteenth answer a long one. */
function* said(count) {
    for (let n = 0; n < count; n++) {
        const uuid = `m${n}`;
        const id = `call-${n - (n % 3)}`;
        const isEdit = (n - (n % 3)) % 30 === 0;
        const content = n % 3 === 0
            ? [
                {
                    type: 'text',
                    text: `Step ${n}: I look at \`src/file-${n}.ts\` and see **what** has to change.\n\n- one\n- two`,
                },
                isEdit
                    ? { type: 'tool_use', id, name: 'Edit', input: edit(n) }
                    : { type: 'tool_use', id, name: 'Bash', input: { command: `sed -n 1,40p src/file-${n}.ts` } },
            ]
            : n % 3 === 1
                ? [{ type: 'tool_result', tool_use_id: id, content: `line of the file ${n}\n`.repeat(12) }]
                : [
                    {
                        type: 'text',
                        text: `That was step ${n}. The next one follows from it, and so on.${n % 45 === 2 ? `\n\n${LONG}` : ''}`,
                    },
                ];
        const role = n % 3 === 1 ? 'user' : 'assistant';
        yield { type: `${role}_message`, uuid, parentToolUseId: null, message: { role, content } };
    }
}
answer({
    url: () => url,
    /** A session with so many events. @returns its id */
    async session(count) {
        const { id } = await worker.registry.create({ cwd: tmpdir(), title: `${count} events` });
        for (const event of said(count))
            engine.last.host.emit(event);
        return id;
    },
});
//# sourceMappingURL=console.js.map