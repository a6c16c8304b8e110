/**
 * Runs many test files in one process, each as one subtest by its path: loading the gateway costs more than most of them. What a file gets
 * as `tap` is its subtest.
 */
import { register } from 'node:module'
import tap from 'tap'
import { filesOf, ROOT } from '../batches/suite.mjs'
import { undocumented } from './documented.mjs'

register('./one-of-many.mjs', import.meta.url)

/** The test of the file that is being loaded. */
export let ofFile = tap

let longest = { name: '', ms: 0 }

/** Notes which test takes longest: of a group that hangs the report has no more than what was over before. */
const watch = (test) =>
  test.on('subtestStart', (subtest) => {
    const startedAt = performance.now()
    watch(subtest).once('end', () => {
      const ms = performance.now() - startedAt
      // those that it is part of take a little longer
      if (ms > longest.ms + 5_000) longest = { name: subtest.fullname, ms }
    })
  })

/** @param group as in `suite.mjs` */
export async function runGroup(group) {
  watch(tap)
  // sent by the runner; the test that hangs was ended just before
  process.prependOnceListener('SIGALRM', () => {
    console.error(`ended by the runner; ${longest.name} had taken ${Math.round(longest.ms / 1000)} s`)
  })
  for (const file of filesOf(group)) {
    await tap.test(file, async (t) => {
      ofFile = t
      await import(new URL(file, ROOT))
    })
    const seen = undocumented()
    if (seen) tap.fail(`${file}: the documents say all that was seen`, { seen })
  }
}
