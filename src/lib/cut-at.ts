/** The first `max` UTF-16 units, without half of a character at the end. */
export const cutAt = (text: string, max: number): string => text.slice(0, max).replace(/[\uD800-\uDBFF]$/, '')
