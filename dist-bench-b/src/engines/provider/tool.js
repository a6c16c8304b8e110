import { Value } from '@sinclair/typebox/value';
import { toError } from '../../errors.js';
export const text = (content) => ({ content });
export const failure = (content) => ({ content, isError: true });
/** A tool of this package: its input is checked against its schema before anybody is asked, and again after an allow. */
export function bundledTool(tool) {
    const { name, description, input: schema, asks, title, check, run } = tool;
    const checked = (input) => input;
    return {
        name,
        description,
        asks,
        inputSchema: JSON.parse(JSON.stringify(schema)),
        ...(title && { title: (input) => title(checked(input)) }),
        problemWith(input) {
            const error = Value.Errors(schema, input).First();
            if (error)
                return `${error.path.slice(1).replaceAll('/', '.') || 'input'}: ${error.message}`;
            try {
                check?.(checked(input));
            }
            catch (thrown) {
                return toError(thrown).message;
            }
            return undefined;
        },
        run: (input, context) => run(checked(input), context),
    };
}
/** A session's tools by name, and what may run without asking. */
export class ToolBox {
    #tools;
    #allowed;
    /**
     * @param allowed names of tools, or groups, that need no leave in any mode
     * @param disallowed names of tools, or groups, that are left out
     */
    constructor(tools, allowed = [], disallowed = []) {
        const leftOut = new Set(disallowed);
        this.#tools = new Map(tools.filter((tool) => !isNamed(tool, leftOut)).map((tool) => [tool.name, tool]));
        this.#allowed = new Set(allowed);
    }
    get names() {
        return [...this.#tools.keys()];
    }
    all() {
        return [...this.#tools.values()];
    }
    get(name) {
        return this.#tools.get(name);
    }
    leaveFor(tool, mode) {
        if (tool.asks === 'never')
            return 'granted';
        const isFree = mode === 'bypassPermissions' || isNamed(tool, this.#allowed);
        if (tool.asks === 'unless-allowed' && isFree)
            return 'granted';
        return mode === 'dontAsk' ? 'refused' : 'ask';
    }
}
const isNamed = (tool, names) => names.has(tool.name) || (tool.group !== undefined && names.has(tool.group));
//# sourceMappingURL=tool.js.map