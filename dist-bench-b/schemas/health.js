import { Type } from '@sinclair/typebox';
import { described, StringEnum } from './common.js';
export const Alive = Type.Object({ status: Type.Literal('ok') }, { description: 'The process is alive.' });
export const Ready = Type.Object({ status: Type.Literal('ready') }, { description: 'It takes work.' });
export const NotReadyReason = described(StringEnum('starting', 'draining', 'storage_unavailable', 'lost'), '`starting`: its stores are being read · `draining`: it is about to stop · `storage_unavailable`: its storage takes nothing · `lost`: another node has taken over what it had, and it is to be started anew.');
export const NotReady = Type.Object({ status: NotReadyReason }, { description: 'It takes no work now.' });
//# sourceMappingURL=health.js.map