import { Type } from '@sinclair/typebox';
import { Ms, Section } from './config-parts.js';
/** How long people stay signed in to the console. */
export const consoleSettings = Section({
    sessionTtlMs: Type.Optional(Ms({ default: 43_200_000, description: 'A sign-in that is not used for so long ends. Default 12 hours.' }, 1)),
    sessionMaxAgeMs: Type.Optional(Ms({ default: 604_800_000, description: 'It ends then, however much it is used. Default 7 days.' }, 1)),
});
export const consoleSection = Type.Union([Type.Boolean(), consoleSettings], {
    default: true,
    description: 'The web application for people, under `{basePath}/console/`; false: none.',
});
//# sourceMappingURL=config-console.js.map