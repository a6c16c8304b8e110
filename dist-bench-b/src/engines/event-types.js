/** One row per type of event; its shape and its sentence are in `schemas/events.ts`. */
const ROWS = {
    system_init: { by: 'engine' },
    status_changed: { by: 'gateway', isPlain: true },
    capabilities: { by: 'engine', leavesState: true },
    model_changed: { by: 'engine' },
    permission_mode_changed: { by: 'engine' },
    user_message: { by: 'engine', goesOn: true },
    assistant_message: { by: 'engine', goesOn: true, leavesState: true },
    stream_delta: { by: 'engine', goesOn: true, leavesState: true, isLive: true },
    turn_completed: { by: 'engine', goesOn: true, isMoment: true },
    permission_requested: { by: 'gateway', isMoment: true, isUrgent: true },
    permission_resolved: { by: 'gateway', isMoment: true },
    execution_dispatched: { by: 'engine', goesOn: true },
    execution_result: { by: 'engine' },
    execution_failed: { by: 'engine' },
    file_delivered: { by: 'engine', leavesState: true },
    context_usage: { by: 'engine', leavesState: true },
    plan_updated: { by: 'engine', leavesState: true },
    rate_limit: { by: 'engine', leavesState: true },
    engine_event: { by: 'engine', leavesState: true },
    session_error: { by: 'engine', isMoment: true },
    session_closed: { by: 'gateway', isPlain: true, isMoment: true },
};
export const EVENT_TYPES = ROWS;
/** Those that are the engine's to tell, to be asked of whatever an engine says. */
export const ENGINE_EVENT_TYPES = new Map(Object.entries(EVENT_TYPES).filter(([, { by }]) => by === 'engine'));
//# sourceMappingURL=event-types.js.map