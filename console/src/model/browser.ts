/** What a browser calls itself, in two words; the rest of it says less. Pure. */

const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/\bEdgA?\//, 'Edge'],
  [/\bOPR\//, 'Opera'],
  [/\bFirefox\/|\bFxiOS\//, 'Firefox'],
  [/\bHeadlessChrome\/|\bChrome\/|\bCriOS\//, 'Chrome'],
  [/\bSafari\//, 'Safari'],
]
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/\biPhone\b/, 'iPhone'],
  [/\biPad\b/, 'iPad'],
  [/\bAndroid\b/, 'Android'],
  [/\bWindows\b/, 'Windows'],
  [/\bMac OS X\b/, 'macOS'],
  [/\bLinux\b/, 'Linux'],
]

/** `Firefox on Linux`; undefined when it says neither. */
export function browserOf(userAgent: string): string | undefined {
  const known = (all: typeof BROWSERS) => all.find(([pattern]) => pattern.test(userAgent))?.[1]
  const browser = known(BROWSERS)
  const system = known(SYSTEMS)
  return browser && system ? `${browser} on ${system}` : (browser ?? system)
}
