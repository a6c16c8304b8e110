import assert from 'node:assert/strict'

/** One thing that every implementation of a seam does, for the authors of further ones. */
export interface ConformanceCase<Part> {
  name: string
  /**
   * @param part an empty one
   * @param reopen for those that outlast their process: gives the same one as a new process would see it
   * @throws AssertionError
   */
  run(part: Part, reopen?: () => Part | Promise<Part>): Promise<void>
}

/** Of stores that several processes may have: each change is seen by its version. @param changes some, one after the other */
export const versionCase = <Part extends { version?(): number | Promise<number> }>(
  changes: (part: Part) => (() => unknown)[],
): ConformanceCase<Part> => ({
  name: 'has another version after every change, if it has one',
  async run(part, reopen) {
    if (!part.version) return
    const versions = [await part.version()]
    for (const change of changes(part)) {
      await change()
      versions.push(await part.version())
    }
    assert.equal(new Set(versions).size, versions.length)
    if (reopen) assert.equal(await (await reopen()).version!(), versions.at(-1))
  },
})
