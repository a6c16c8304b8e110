import { invalidField } from '../errors.js'

export const MAX_PAGE = 200

/** One page of a list; `next` is the cursor of the page after it. */
export interface Page<T> {
  items: T[]
  next: string | undefined
}

/** Where a list in descending order goes on: after the item with this time and ordinal. */
interface Position {
  at: number
  ordinal: number
}

/**
 * Cuts a page out of items that come newest first.
 * @param cursor the `next` of the page before; a deleted item does not disturb it
 * @throws SG_ERR_VALIDATION on a cursor that is none of ours
 */
export function pageOf<T>(
  newestFirst: Iterable<T>,
  position: (item: T) => Position,
  { limit = MAX_PAGE, cursor }: { limit?: number | undefined; cursor?: string | undefined },
): Page<T> {
  const after = cursor === undefined ? undefined : decode(cursor)
  const items: T[] = []
  for (const item of newestFirst) {
    if (after && !isBefore(position(item), after)) continue
    if (items.length === limit) return { items, next: encode(position(items.at(-1)!)) }
    items.push(item)
  }
  return { items, next: undefined }
}

const isBefore = (a: Position, b: Position): boolean => a.at < b.at || (a.at === b.at && a.ordinal < b.ordinal)

const encode = ({ at, ordinal }: Position): string => Buffer.from(`${at}.${ordinal}`).toString('base64url')

function decode(cursor: string): Position {
  const match = /^(\d{1,16})\.(\d{1,16})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'))
  if (!match) throw invalidField('cursor', 'is not one that this gateway gave out.')
  return { at: Number(match[1]), ordinal: Number(match[2]) }
}
