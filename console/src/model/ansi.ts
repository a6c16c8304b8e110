import { visibleOutput } from './visible.js'

/** A run of text in one style. `style`: names of classes, such as `b fg1`. */
export interface Run {
  text: string
  style: string
}

const SGR = /(?:\u001b\[|\u009b)([0-9;:]*)m/g
const MAX_RUNS = 5_000

/**
 * The colours of a terminal's output, and nothing else that a terminal would do: what hides text (8) or takes its background (7) is left
 * out, so that all that is there is seen.
 */
export function runsOf(text: string): Run[] {
  const runs: Run[] = []
  let [foreground, isBold, isItalic, isUnderlined] = [-1, false, false, false]
  const style = (): string =>
    [foreground >= 0 && `fg${foreground}`, isBold && 'b', isItalic && 'i', isUnderlined && 'u']
      .filter(Boolean)
      .join(' ')
  const push = (part: string): void => {
    const shown = visibleOutput(part)
    if (!shown) return
    const last = runs.at(-1)
    const now = runs.length >= MAX_RUNS ? (last?.style ?? '') : style()
    if (last?.style === now) last.text += shown
    else runs.push({ text: shown, style: now })
  }
  let from = 0
  for (const match of text.matchAll(SGR)) {
    push(text.slice(from, match.index))
    from = match.index + match[0].length
    const given = (match[1] ?? '').split(';')
    for (let at = 0; at < given.length; at++) {
      // what belongs to a code stands behind it with colons, `38:5:1`, or as the next ones, `38;5;1`
      const [code = 0, ...own] = given[at]!.split(':').map(Number)
      if (code === 0) [foreground, isBold, isItalic, isUnderlined] = [-1, false, false, false]
      else if (code === 1) isBold = true
      else if (code === 3) isItalic = true
      else if (code === 4) isUnderlined = own[0] !== 0
      else if (code === 22) isBold = false
      else if (code === 23) isItalic = false
      else if (code === 24) isUnderlined = false
      else if (code === 39) foreground = -1
      else if (code >= 30 && code <= 37) foreground = code - 30
      else if (code >= 90 && code <= 97) foreground = code - 90
      else if (code === 38 || code === 48 || code === 58) {
        const [way, index = 0] = own.length > 0 ? own : given.slice(at + 1, at + 3).map(Number)
        if (way === 5 && code === 38) foreground = index < 16 ? index % 8 : -1
        if (own.length === 0) at += way === 5 ? 2 : 4
      }
    }
  }
  push(text.slice(from))
  return runs
}
