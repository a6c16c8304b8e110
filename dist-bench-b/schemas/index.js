export * from './commands.js';
export * from './common.js';
export { ConfigToken, GatewayConfig } from './config.js';
export * from './console.js';
export * from './directories.js';
export * from './errors.js';
export * from './events.js';
export * from './executions.js';
export * from './frames.js';
export * from './health.js';
export * from './jobs.js';
export * from './notifications.js';
export * from './permissions.js';
export * from './profiles.js';
export * from './sdk-sessions.js';
export * from './sessions.js';
export * from './usage.js';
//# sourceMappingURL=index.js.map