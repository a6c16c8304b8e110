import { Type } from '@sinclair/typebox';
import { ASK_USER_QUESTION } from '../../../schemas/permissions.js';
import { bundledTool, failure, text } from './tool.js';
const Question = Type.Object({
    question: Type.String({ minLength: 1 }),
    header: Type.String({ description: 'A label of one or two words' }),
    options: Type.Array(Type.Object({ label: Type.String({ minLength: 1 }), description: Type.Optional(Type.String()) }), {
        minItems: 2,
    }),
    multiSelect: Type.Optional(Type.Boolean({ description: 'Whether several options may be chosen' })),
});
/** Asks the user. The call is a permission request; the answers come with its allow, in `answers`, by the text of the question. */
export const questionTool = bundledTool({
    name: ASK_USER_QUESTION,
    description: 'Asks the user up to four multiple-choice questions and waits for the answers. Use it when a decision is the user’s to take.',
    input: Type.Object({ questions: Type.Array(Question, { minItems: 1, maxItems: 4 }) }),
    asks: 'always',
    run(input) {
        const { answers } = input;
        return typeof answers === 'object' && answers !== null
            ? text(JSON.stringify({ answers }))
            : failure('The user let the question pass without an answer.');
    },
});
//# sourceMappingURL=question-tool.js.map