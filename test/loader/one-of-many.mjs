/** Gives each test file that runs together with others a `tap` of its own. */
const TEST = new URL('../', import.meta.url).href

export async function resolve(specifier, context, next) {
  const { parentURL = '' } = context
  if (specifier !== 'tap' || !parentURL.startsWith(TEST) || !parentURL.endsWith('.test.ts'))
    return next(specifier, context)
  return {
    url: `${new URL('tap-of-file.mjs', import.meta.url)}?${parentURL.slice(TEST.length)}`,
    format: 'module',
    shortCircuit: true,
  }
}
