import { Type } from '@sinclair/typebox';
import { described, Flag, JsonObject, Moment, StringEnum, strict, Text } from './common.js';
export const PermissionMode = described(StringEnum('default', 'bypassPermissions', 'dontAsk', 'acceptEdits', 'plan', 'auto'), 'What an agent may do without asking. `default`: asks before it does what may do harm · `bypassPermissions`: never asks · `dontAsk`: what would be asked is denied · `acceptEdits`: changes files without asking · `plan`: nothing is written · `auto`: the agent decides. The `provider` engine has the first three.');
export const PROVIDER_PERMISSION_MODES = ['default', 'bypassPermissions', 'dontAsk'];
export const CLI_PERMISSION_MODES = [
    ...PROVIDER_PERMISSION_MODES,
    'acceptEdits',
    'plan',
    'auto',
];
/** `toolName` of the request by which an agent asks its user a question. */
export const ASK_USER_QUESTION = 'AskUserQuestion';
export const PermissionRequest = Type.Object({
    id: Text('What an answer names.'),
    toolName: Text('The tool that is to run; `AskUserQuestion` when it is a question to the user.'),
    toolUseId: Text('The `tool_use` block that it is about.'),
    input: described(JsonObject, 'What the tool is to run with. Of a question: `questions`, an array of `{ question, header, options: [{ label, description? }], multiSelect? }`.'),
    title: Type.Optional(Text('What is asked, in a few words.')),
    description: Type.Optional(Text('What it would do.')),
    decisionReason: Type.Optional(Text('Why it has to be asked.')),
    agentId: Type.Optional(Text('The helper of the agent that wants it.')),
    expiresAt: Type.Optional(Moment('When it counts as denied; absent: never')),
}, { description: 'An approval, or a question, that an agent waits for.' });
const allow = {
    behavior: Type.Literal('allow'),
    updatedInput: Type.Optional(described(JsonObject, 'What the tool runs with instead. To a question: `{ answers }`, from the text of each question to the label that was chosen, or to labels joined by `, `.')),
};
const deny = {
    behavior: Type.Literal('deny'),
    message: Type.Optional(Text('What the agent is told.')),
    interrupt: Type.Optional(Flag('Ends the turn, too. Default false.')),
};
export const permissionDecisionFields = { allow, deny };
export const ResolvePermissionRequest = Type.Union([
    Type.Object(allow, {
        ...strict,
        description: 'Lets it run; without `updatedInput` with the input that was shown.',
    }),
    Type.Object(deny, { ...strict, description: 'Does not let it run.' }),
], { description: 'The answer to a permission request.' });
export const ResolvePermissionResponse = Type.Object({ resolved: Type.Literal(true) }, { description: 'This answer was the first.' });
export const ResolvedBy = described(StringEnum('client', 'timeout', 'policy'), 'Who settled a permission request: somebody, its deadline, or a rule of the gateway.');
export const AnswerChannel = described(StringEnum('socket', 'rest', 'inbox', 'link', 'policy', 'timeout'), "The way by which an answer came: a person's, or that of the clock or the policy.");
export const AnsweredBy = Type.Object({ principal: Type.Optional(Text('Name of the caller, as `authenticate` gave it.')), channel: AnswerChannel }, { description: 'Who answered.' });
//# sourceMappingURL=permissions.js.map