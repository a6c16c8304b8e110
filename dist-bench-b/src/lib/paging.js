import { invalidField } from '../errors.js';
import { jsonBytesAtMost } from './json-bytes.js';
export const MAX_PAGE = 200;
/** Of JSON; one row that is larger is a page of its own. */
export const MAX_PAGE_BYTES = 1024 * 1024;
/** Fills a page with rows as they are shown, up to `limit` of them or about 1 MiB, and at least one. */
export class PageBuilder {
    items = [];
    #limit;
    /** Of the items, or at most so many while nobody has to know. */
    #bytes = 0;
    #isMeasured = false;
    constructor(limit = MAX_PAGE) {
        this.#limit = limit;
    }
    /** @returns whether it found room; the page ends before it otherwise */
    add(item) {
        if (this.items.length === this.#limit)
            return false;
        // a page of ordinary rows has room to spare: each would be made JSON twice
        if (!this.#isMeasured) {
            const bytes = this.#bytes + jsonBytesAtMost(item);
            if (bytes > MAX_PAGE_BYTES)
                this.#measure();
            else
                this.#bytes = bytes;
        }
        if (this.#isMeasured) {
            this.#bytes += jsonBytes(item);
            if (this.items.length > 0 && this.#bytes > MAX_PAGE_BYTES)
                return false;
        }
        this.items.push(item);
        return true;
    }
    #measure() {
        this.#isMeasured = true;
        this.#bytes = this.items.reduce((sum, item) => sum + jsonBytes(item), 0);
    }
}
const jsonBytes = (item) => Buffer.byteLength(JSON.stringify(item));
/**
 * Cuts a page out of items that come newest first.
 * @param orderOf falls from item to item, and stays what it is for as long as the item is there
 * @param show what the page has of an item
 * @param cursor the `next` of the page before; a deleted item does not disturb it
 * @throws SG_ERR_VALIDATION on a cursor that is none of ours
 */
export function pageOf(newestFirst, orderOf, show, { limit, cursor }) {
    const before = cursor === undefined ? Number.POSITIVE_INFINITY : decodeOrder(cursor);
    const page = new PageBuilder(limit);
    let last;
    for (const item of newestFirst) {
        if (orderOf(item) >= before)
            continue;
        if (!page.add(show(item)))
            return { items: page.items, next: encodeOrder(orderOf(last)) };
        last = item;
    }
    return { items: page.items, next: undefined };
}
/** The cursor of a place in an order. */
export const encodeOrder = (order) => Buffer.from(String(order)).toString('base64url');
/** @throws SG_ERR_VALIDATION on a cursor that is none of ours */
export function decodeOrder(cursor) {
    const text = Buffer.from(cursor, 'base64url').toString('latin1');
    if (!/^\d{1,16}$/.test(text))
        throw invalidField('cursor', 'is not one that this gateway gave out.');
    return Number(text);
}
/** Lets no two pages be made in one turn of the event loop, however many ask: what comes in between is not kept waiting for all of them. */
export class PageTurns {
    #isTaken = false;
    #waiting = [];
    /** Resolves in a turn in which no page was made. */
    async next() {
        if (this.#isTaken)
            await new Promise((resolve) => this.#waiting.push(resolve));
        else
            this.#take();
    }
    #take() {
        this.#isTaken = true;
        setImmediate(() => {
            this.#isTaken = false;
            const next = this.#waiting.shift();
            if (!next)
                return;
            this.#take();
            next();
        });
    }
}
//# sourceMappingURL=paging.js.map