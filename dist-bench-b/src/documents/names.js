import { Kind } from '@sinclair/typebox';
import * as schemas from '../../schemas/index.js';
export const TAGGED = {
    SessionEvent: { by: 'type', suffix: 'Event' },
    ServerFrame: { by: 'type', suffix: 'Frame' },
    QueueFrame: { by: 'type', suffix: 'Frame' },
    NotificationsFrame: { by: 'type', suffix: 'Frame' },
    InboxAnswer: { by: 'behavior', suffix: 'InboxAnswer' },
    SessionCommand: { by: 'type', suffix: 'Command' },
    StreamDelta: { by: 'type', suffix: 'Delta' },
    ExecutionOutput: { by: 'type', suffix: 'Output' },
    SubmitExecutionResultRequest: { by: 'status', suffix: 'ExecutionResult' },
    ResolvePermissionRequest: { by: 'behavior', suffix: 'PermissionAnswer' },
    PermissionDecisionCommand: { by: 'behavior', suffix: 'PermissionCommand' },
};
/** What is no public type of its own: parts that others are built from, and other names of the same. */
const NO_COMPONENT = new Set([
    'JsonObject',
    'Origin',
    'ProfileOptions',
    'StoredProfile',
    'SessionEventBody',
    'GatewayConfig',
    'ConfigToken',
    'ChannelFormat',
    'PushMessage',
    'UncheckedAnswers',
]);
const isComponent = (name, value) => typeof value === 'object' &&
    value !== null &&
    Kind in value &&
    /^[A-Z]/.test(name) &&
    !/(?:Params|Query)$/.test(name) &&
    !NO_COMPONENT.has(name);
/** Types are told by their shape: `Type.Optional` and the like hand on a copy, and where one is used it may be described anew. */
export const shapeOf = ({ description: _, ...shape }) => JSON.stringify(shape);
const byShape = new Map();
for (const [name, value] of Object.entries(schemas))
    if (isComponent(name, value) && !byShape.has(shapeOf(value)))
        byShape.set(shapeOf(value), name);
/** The name of a public type, as `schemas/` exports it. */
export const nameOf = (schema) => byShape.get(shapeOf(schema));
/** What is said of a public type wherever nothing else is. */
export const descriptionOf = (name) => schemas[name]?.description;
/** `system_init` with `Event` is `SystemInitEvent`. */
export const variantName = (tag, suffix) => `${tag
    .split(/[_-]/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')}${suffix}`.replace(RegExp(`${suffix}${suffix}$`), suffix);
//# sourceMappingURL=names.js.map