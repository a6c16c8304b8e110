/** What somebody else wrote, as the end of a sentence of ours: with one full stop, whether it brings its own or not. */
export function ended(text: string): string {
  const words = text.trimEnd()
  return /[.!?…。！？]["'”’)\]]?$/u.test(words) ? words : `${words}.`
}
