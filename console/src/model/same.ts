const MAX_DEPTH = 5

/**
 * Whether two values say the same, as far as that can be told at once: what is large in a transcript is the same object, since it is the
 * event's, and is not looked into. Neither is a table.
 */
export function isSame(a: unknown, b: unknown, depth = 0): boolean {
  if (Object.is(a, b)) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || depth === MAX_DEPTH) return false
  if (Array.isArray(a) !== Array.isArray(b) || a instanceof Map || b instanceof Map) return false
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length || names.length > 100) return false
  return names.every((name) =>
    isSame((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name], depth + 1),
  )
}
