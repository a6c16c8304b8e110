/**
 * Text of agents and users, made safe to look at: nothing in it hides, reorders or erases what stands beside it. Pure.
 */

/** Escape sequences of terminals: CSI, OSC and other strings to their end, and the short ones. */
const ESCAPES =
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]PX^_]|[\u0090\u0098\u009d\u009e\u009f])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c|$)|\u001b[ -/]*[0-~]/g

/** Controls but tab and newline; marks that reorder text, are not seen, or spell what is not seen. */
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|\u034f|[\u{e0000}-\u{e0fff}]/gu

const named = (mark: string): string => `[U+${mark.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}]`

/** Lines end in one way; a carriage return within a line, by which terminals write over it, begins a new one. */
const withLines = (text: string): string => text.replace(/\r\n?/g, '\n')

/** What is not seen is spelled out: `[U+202E]`. */
export const visible = (text: string): string => withLines(text).replace(UNSEEN, named)

/** The same of what a tool has put out, without escape sequences. Of what is to run they would hide what a shell runs of them. */
export const visibleOutput = (text: string): string => visible(text.replace(ESCAPES, ''))

/** The same on one line, cut to `length` characters: for titles and names. */
export function visibleLine(text: string, length = 200): string {
  // what comes after can be megabytes
  const line = visible(text.slice(0, length * 8))
    .replace(/\s+/g, ' ')
    .trim()
  return line.length > length ? `${cut(line, length - 1)}…` : line
}

/** The first `length` UTF-16 units, and never half of a pair. */
export function cut(text: string, length: number): string {
  const last = text.charCodeAt(length - 1)
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? length - 1 : length)
}
