import t from 'tap'
import { JOB_FIELDS, type JobPatch, type StoredJob } from '../../src/jobs/job.js'
import { patched, shown } from '../../src/jobs/patch.js'
import { UNLIMITED } from '../../src/principal.js'
import { jobRequest, jobWorld } from '../fixtures/job-world.js'

t.test('a long prompt is cut where many are shown, and whole where one is asked for', async (t) => {
  const { queue, events } = await jobWorld(t)
  const prompt = `${'x'.repeat(999)}🥊${'y'.repeat(100_000)}`
  const job = await queue.submit(jobRequest({ session: { cwd: '/srv/work', prompt } }))
  const short = await queue.submit(jobRequest())
  const { items } = await queue.page({}, UNLIMITED)
  t.match(items, [{ id: short.id }, { id: job.id, prompt: 'x'.repeat(999), promptTruncated: true }])
  t.equal(items[0]?.promptTruncated, undefined)
  t.match(events[0], { job: { prompt: 'x'.repeat(999), promptTruncated: true } })
  t.equal((await queue.get(job.id))?.prompt, prompt)
})

t.test('what a caller attaches for itself cannot be so large that the lists of all others suffer', async (t) => {
  const { queue } = await jobWorld(t)
  const meta = { note: 'x'.repeat(16 * 1024) }
  await t.rejects(queue.submit(jobRequest({ meta })), { code: 'SG_ERR_VALIDATION', errors: [{ path: 'meta' }] })
  const session = { cwd: '/srv/work', prompt: 'go', meta }
  await t.rejects(queue.submit(jobRequest({ session })), { errors: [{ path: 'session.meta' }] })
})

t.test('a patch sets and clears every field that may be patched, and leaves all others as they are', async (t) => {
  const fields = Object.keys(JOB_FIELDS) as (keyof typeof JOB_FIELDS)[]
  const job = Object.fromEntries(
    fields.filter((field) => JOB_FIELDS[field] !== 'shown').map((field) => [field, `${field} before`]),
  ) as unknown as StoredJob
  t.same(patched(job, {}), job)
  const { notes: _ours, ...wire } = job
  t.same(shown(job), wire)
  for (const field of fields) {
    const kind: string = JOB_FIELDS[field]
    if (kind !== 'patched') continue
    t.same(patched(job, { [field]: 'after' } as JobPatch), { ...job, [field]: 'after' }, `${field} is set`)
    if (['status', 'attempt', 'usage'].includes(field)) continue
    const { [field]: _cleared, ...rest } = job
    t.same(patched(job, { [field]: undefined } as JobPatch), rest, `${field} is cleared`)
  }
})
