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
