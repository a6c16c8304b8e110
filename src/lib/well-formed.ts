/** Half a character, as a text that was cut has it at its end, becomes U+FFFD: who reads JSON strictly takes nothing of what has one in it. */
export const wellFormed = (text: string): string => text.toWellFormed()

/** A value as JSON has it, with all of its texts so. */
export const wellFormedJson = <T>(value: T): T =>
  JSON.parse(JSON.stringify(value), (_key, member) => (typeof member === 'string' ? wellFormed(member) : member)) as T
