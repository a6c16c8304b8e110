import type { JobInfo, ListJobsQuery } from '../../schemas/jobs.js'
import { invalidField } from '../errors.js'
import { MAX_PAGE, type Page, PageBuilder } from '../lib/paging.js'
import { type Principal, profilesAsked, visibleProfiles } from '../principal.js'
import { type JobFilter, type JobPlace, type JobRecord, listJobs, placeOf, type QueueAdapter } from './adapter.js'
import type { StoredJob } from './job.js'

/** So many are asked for and held at once: each has its prompt whole, and its request. */
const JOBS_AT_ONCE = 25

/**
 * One page of jobs, newest first.
 * @param show what the page has of a job
 * @throws SG_ERR_VALIDATION on a cursor that is none of ours
 */
export async function jobPage(
  adapter: QueueAdapter,
  { limit = MAX_PAGE, cursor, status, profile }: ListJobsQuery,
  principal: Principal,
  show: (job: StoredJob) => JobInfo,
): Promise<Page<JobInfo>> {
  const profiles = profilesAsked(principal, profile)
  const page = new PageBuilder<JobInfo>(limit)
  const asked = Math.min(limit + 1, JOBS_AT_ONCE)
  let last: JobRecord | undefined
  for (let after = cursor === undefined ? undefined : decode(cursor, principal); ; after = placeOf(last)) {
    const filter: JobFilter = {
      limit: asked,
      ...(status !== undefined && { status: [status] }),
      ...(profiles && { profiles }),
      ...(after && { after }),
    }
    const found = await listJobs(adapter, filter)
    for (const record of found) {
      if (!page.add(show(record.info))) return { items: page.items, next: encode(last!, principal) }
      last = record
    }
    if (!last || found.length < asked) return { items: page.items, next: undefined }
  }
}

/** Whether somebody may know where a job stands among all: the difference of two places counts what was submitted between them. */
const seesAll = (principal: Principal): boolean => visibleProfiles(principal) === undefined

function encode(record: JobRecord, principal: Principal): string {
  const { id, createdAt, position } = placeOf(record)
  const place = seesAll(principal) ? (position ?? []) : []
  return Buffer.from([createdAt, place, id].flat().join('.')).toString('base64url')
}

function decode(cursor: string, principal: Principal): JobPlace {
  const match = /^(\d{1,16})\.(?:(\d{1,16})\.)?([\w-]{1,64})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'))
  if (!match) throw invalidField('cursor', 'is not one that this gateway gave out.')
  const [, createdAt, position, id] = match
  // one that is made up would find out by halves where the caller's own jobs stand
  const isTaken = position !== undefined && seesAll(principal)
  return { id: id!, createdAt: Number(createdAt), ...(isTaken && { position: Number(position) }) }
}
