import { defaultsOf, GatewayConfig } from '../../schemas/config.js';
const { queue } = GatewayConfig.properties;
export const QUEUE_DEFAULTS = { ...defaultsOf(queue), ...defaultsOf(queue.properties.retention) };
//# sourceMappingURL=options.js.map