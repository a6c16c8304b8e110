/** What models write so; other names stay as they are written. */
const NAMED: Record<string, string> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00a0',
  copy: '©',
  reg: '®',
  trade: '™',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  middot: '·',
  bull: '•',
  times: '×',
  deg: '°',
  euro: '€',
  le: '≤',
  ge: '≥',
  ne: '≠',
  larr: '←',
  rarr: '→',
}

function character(name: string): string | undefined {
  if (!name.startsWith('#')) return Object.hasOwn(NAMED, name) ? NAMED[name] : undefined
  const point = /^#x/i.test(name) ? Number.parseInt(name.slice(2), 16) : Number(name.slice(1))
  const isCharacter = point > 0 && point <= 0x10ffff && !(point >= 0xd800 && point < 0xe000)
  return isCharacter ? String.fromCodePoint(point) : '\ufffd'
}

/** The characters that `&amp;` and `&#38;` stand for, which Markdown knows everywhere but in code. Pure. */
export const withCharacters = (text: string): string =>
  text.includes('&')
    ? text.replace(/&(#\d{1,7}|#[xX][\da-fA-F]{1,6}|[a-z]{2,6});/g, (written, name) => character(name) ?? written)
    : text
