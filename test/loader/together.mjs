/**
 * Runs many test files in one process, each as one subtest by its path: loading the gateway costs more than most of them. What a file gets
 * as `tap` is its subtest.
 */
import { register } from 'node:module'
import tap from 'tap'
import { filesOf, ROOT } from '../together/suite.mjs'
import { undocumented } from './documented.mjs'

register('./one-of-many.mjs', import.meta.url)

/** The test of the file that is being loaded. */
export let ofFile = tap

/** @param group as in `suite.mjs` */
export async function runGroup(group) {
  for (const file of filesOf(group)) {
    await tap.test(file, async (t) => {
      ofFile = t
      await import(new URL(file, ROOT))
    })
    const seen = undocumented()
    if (seen) tap.fail(`${file}: the documents say all that was seen`, { seen })
  }
}
