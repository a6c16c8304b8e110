/** Control and format characters, separators of lines, and halves of characters. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu

/** Marks that are not seen, or turn the reading direction around, are written out: what is shown is what would run. */
export const shown = (text: string): string =>
  text.replace(HIDDEN, (mark) => (mark === '\n' || mark === '\t' ? mark : `\\u{${mark.codePointAt(0)!.toString(16)}}`))
