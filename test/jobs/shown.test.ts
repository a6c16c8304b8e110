import t from 'tap'
import { JOB_FIELDS, type JobPatch, type StoredJob } from '../../src/jobs/job.js'
import { patched, shown } from '../../src/jobs/patch.js'
import { UNLIMITED } from '../../src/principal.js'
import { createMemoryQueueAdapter } from '../../src/storage/memory/queue-adapter.js'
import { FakeSessions, jobRequest, jobWorld, settle } from '../fixtures/job-world.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

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

t.test(
  'what an agent said at length is cut in a page, and whole where a job is asked for or is told to be over',
  async (t) => {
    const { queue, sessions, events } = await jobWorld(t)
    const job = await queue.submit(jobRequest())
    await settle()
    const errors = [`${'x'.repeat(9_999)}🥊${'y'.repeat(5_000_000)}`, 'and that']
    const text = 'z'.repeat(5_000_000)
    sessions.last.complete({ isError: true, subtype: 'error_during_execution', errors, result: text })
    await settle()
    const error = errors.join(' · ')
    const [row] = (await queue.page({}, UNLIMITED)).items
    const begins = 'x'.repeat(9_999)
    t.match(row, { status: 'failed', error: begins, resultTruncated: true })
    t.match(row?.result, { text: 'z'.repeat(10_000), errors: [begins], durationMs: Number })
    t.equal(row?.result?.errors?.length, 1)
    for (const whole of [await queue.get(job.id), events.at(-1)?.job]) {
      t.match(whole, { error, result: { text, errors } })
      t.equal(whole?.resultTruncated, undefined)
    }
  },
)

t.test('what an agent said in a few words is whole in a page', async (t) => {
  const { queue, sessions } = await jobWorld(t)
  const job = await queue.submit(jobRequest())
  await settle()
  const errors = ['x'.repeat(5_000), 'y'.repeat(4_000)]
  sessions.last.complete({ isError: true, subtype: 'error_during_execution', errors, result: 'z'.repeat(10_000) })
  await settle()
  t.same((await queue.page({}, UNLIMITED)).items, [await queue.get(job.id)])
})

t.test('the session of a job is told once it is there, and can be ended', async (t) => {
  const clock = new VirtualClock()
  const inner = createMemoryQueueAdapter({ now: () => clock.now() })
  const gates: (() => void)[] = []
  const gate = () => new Promise<void>((resolve) => gates.push(resolve))
  const claim: NonNullable<typeof inner.claim> = async (...given) => {
    const claimed = await inner.claim!(...given)
    if (claimed.jobs.length > 0) await gate()
    return claimed
  }
  const sessions = new FakeSessions(clock)
  const create = sessions.create.bind(sessions)
  sessions.create = async (...given) => {
    await gate()
    return create(...given)
  }
  const { queue, job } = await jobWorld(t, { clock, sessions, adapter: { ...inner, claim } })
  const submitted = await queue.submit(jobRequest({ attempts: 2, retryDelayMs: 1_000 }))
  const shownNow = async () => [await job(submitted), (await queue.page({}, UNLIMITED)).items[0]!]
  for (const attempt of [1, 2]) {
    for (const step of ['claimed', 'being created']) {
      await settle()
      t.equal(gates.length, 1)
      for (const seen of await shownNow()) {
        t.match(seen, { status: 'running', attempt }, step)
        t.equal(seen.sessionId, undefined, step)
      }
      gates.shift()!()
    }
    await settle()
    for (const { sessionId } of await shownNow()) t.equal(sessionId, sessions.last.info.id)
    if (attempt === 1) sessions.last.complete({ isError: true, subtype: 'error_during_execution' })
    await settle()
    await clock.advance(1_000)
  }
  sessions.remove(sessions.last.info.id)
  await settle()
  t.match(await job(submitted), { status: 'canceled', sessionId: sessions.last.info.id })
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
