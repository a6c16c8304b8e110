import type { ListJobsQuery } from '../../schemas/jobs.js'
import { invalidField } from '../errors.js'
import { MAX_PAGE, type Page } from '../lib/paging.js'
import { type Principal, visible, visibleProfiles } from '../principal.js'
import { type JobFilter, type JobRecord, type QueueAdapter, selectJobs } from './adapter.js'

/**
 * One page of jobs, newest first.
 * @throws SG_ERR_VALIDATION on a cursor that is none of ours
 */
export async function jobPage(
  adapter: QueueAdapter,
  { limit = MAX_PAGE, cursor, status, profile }: ListJobsQuery,
  principal: Principal,
): Promise<Page<JobRecord>> {
  const profiles = profilesOf(profile, principal)
  const filter: JobFilter = {
    limit: limit + 1,
    ...(status !== undefined && { status: [status] }),
    ...(profiles && { profiles }),
    ...(cursor !== undefined && { after: decode(cursor) }),
  }
  // an adapter that selects costs nothing more here, and one that gives all is put right
  const found = selectJobs(await adapter.list(filter), filter)
  const items = found.slice(0, limit)
  return { items, next: found.length > limit ? encode(items.at(-1)!) : undefined }
}

function profilesOf(profile: string | undefined, principal: Principal): string[] | undefined {
  if (profile !== undefined) return visible(principal, profile) ? [profile] : []
  return visibleProfiles(principal)
}

const encode = ({ info }: JobRecord): string => Buffer.from(`${info.createdAt}.${info.id}`).toString('base64url')

function decode(cursor: string): { id: string; createdAt: number } {
  const match = /^(\d{1,16})\.([\w-]{1,64})$/.exec(Buffer.from(cursor, 'base64url').toString('latin1'))
  if (!match) throw invalidField('cursor', 'is not one that this gateway gave out.')
  return { createdAt: Number(match[1]), id: match[2]! }
}
