import type { JobInfo } from '../../client/index.js'

/** What becomes of jobs while their queue is not followed: no event tells it. */
export class Meanwhile {
  readonly #underWay = new Set<string>()
  /** When the last job that is known was created; undefined: none was looked for yet. */
  #newestAt: number | undefined

  /** A job as it is told of. */
  take({ id, createdAt, finishedAt }: JobInfo): void {
    if (finishedAt === undefined) this.#underWay.add(id)
    else this.#underWay.delete(id)
    if (this.#newestAt !== undefined) this.#newestAt = Math.max(this.#newestAt, createdAt)
  }

  /**
   * Call it whenever the queue is followed anew.
   * @param list gives the newest jobs and those under way
   * @returns those that have ended since the last time
   * @throws what a request throws; the next time tells it then
   */
  async ended(list: () => Promise<JobInfo[]>, get: (id: string) => Promise<JobInfo | undefined>): Promise<JobInfo[]> {
    const listed = new Map((await list()).map((job) => [job.id, job]))
    for (const id of this.#underWay) {
      const job = listed.get(id) ?? (await get(id))
      if (job) listed.set(id, job)
      else this.#underWay.delete(id)
    }
    const newestAt = this.#newestAt ?? Number.POSITIVE_INFINITY
    const ended = [...listed.values()].filter(
      ({ id, createdAt, finishedAt }) => finishedAt !== undefined && (this.#underWay.has(id) || createdAt > newestAt),
    )
    this.#newestAt ??= 0
    for (const job of listed.values()) this.take(job)
    return ended.sort((a, b) => a.finishedAt! - b.finishedAt!)
  }
}
