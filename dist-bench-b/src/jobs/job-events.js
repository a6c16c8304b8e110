import { toError } from '../errors.js';
import { Listeners } from '../lib/listeners.js';
import { newId } from '../lib/new-id.js';
import { PlannedOnce } from '../notifications/planned.js';
import { listed } from './patch.js';
/** Of a change that nobody is told of. */
export const UNHEARD = { kept: [], keep() { }, withdraw() { }, send() { } };
/** The same with the start of the attempt before it, unless that is kept already. */
export function withStart(start, told) {
    if (!start || start.isKept)
        return told;
    return {
        get kept() {
            return [...start.write().deliveries, ...told.kept];
        },
        keep() {
            start.keep();
            told.keep();
        },
        withdraw() {
            told.withdraw();
            // it is true, whatever becomes of what follows it
            start.send();
        },
        send() {
            start.written();
            start.send();
            told.send();
        },
    };
}
const IMPORTANCE = { job_progress: 'progress', job_completed: 'last' };
const whereabouts = ({ url, headers }) => ({
    url,
    ...(headers && { headers }),
});
/** Tells what happens to jobs: observers in this process, and the webhook of the job. */
export class JobEvents {
    #clock;
    #webhooks;
    #listeners;
    constructor({ clock, logger, webhooks }) {
        this.#clock = clock;
        this.#webhooks = webhooks;
        this.#listeners = new Listeners((error, event) => logger.error({ err: toError(error), event }, 'an observer of the queue failed'));
    }
    on(event, listener) {
        return this.#listeners.on(event, listener);
    }
    emit(type, record, more = {}) {
        const announcement = this.announce(type, record, more);
        announcement.keep();
        announcement.send();
    }
    announce(type, record, more) {
        const planned = this.#plan(type, record, more);
        if (!planned)
            return UNHEARD;
        const { delivery, tell } = planned;
        return {
            kept: delivery?.kept ? [delivery.kept] : [],
            keep: () => delivery?.keep(),
            withdraw: () => delivery?.withdraw(),
            send: () => {
                tell();
                delivery?.send();
            },
        };
    }
    /** That an attempt begins: observers are told now. @returns what the webhook is told; whichever write of it comes first keeps that */
    begin(record, job) {
        const planned = this.#plan('job_started', record, { job });
        planned?.tell();
        return planned?.delivery && new PlannedOnce([planned.delivery]);
    }
    /** @returns undefined when nobody wants to hear it */
    #plan(type, { info, request: { webhook } }, more) {
        const delivers = webhook && type !== 'job_submitted' && !(type === 'job_progress' && webhook.progress === 'completion');
        const observed = this.#listeners.has('job_event');
        if (!delivers && !observed)
            return undefined;
        const { job = info, patch, progress, executionId } = more;
        const event = { id: newId(), type, job: listed(job, patch), ts: this.#clock.now() };
        if (progress)
            event.progress = progress;
        if (executionId !== undefined)
            event.executionId = executionId;
        const delivery = delivers && this.#deliveryOf(event, { kind: 'job', ...whereabouts(webhook) });
        return {
            delivery: delivery ? this.#webhooks.deliverer.plan(info.id, delivery) : undefined,
            tell: () => {
                if (observed)
                    this.#listeners.emit('job_event', { event });
            },
        };
    }
    #deliveryOf(event, origin) {
        const { id, type, job } = event;
        const importance = IMPORTANCE[type] ?? 'normal';
        return { id, type, payload: event, importance, origin, target: this.targetOf(job.id, origin) };
    }
    /** The webhook of a job. */
    targetOf(jobId, { url, headers }) {
        const { guard, signingKeys, attempts, retryDelayMs } = this.#webhooks;
        return { key: jobId, url, headers, guard, signingKeys, attempts, retryDelayMs };
    }
    draining() {
        this.#listeners.emit('draining', {});
    }
    budgetChanged(paused) {
        this.#listeners.emit('budget_changed', { paused });
    }
}
//# sourceMappingURL=job-events.js.map