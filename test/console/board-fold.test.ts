import t from 'tap'
import type { JobInfo, SessionInfo } from '../../client/index.js'
import { attemptsOf, columnsOf, type Jobs, laidOut, withJobs } from '../../console/src/model/board.js'

const usage = { inputTokens: 1, outputTokens: 2, cacheCreationTokens: 3, cacheReadTokens: 4 }
const job = (id: string, more: Partial<JobInfo> = {}): JobInfo => ({
  id,
  status: 'queued',
  profile: 'p',
  cwd: '/w',
  prompt: id,
  createdAt: 1,
  attempt: 1,
  maxAttempts: 3,
  usage: { tokens: 0, ...usage, cost: 0, numTurns: 0 },
  ...more,
})
const session = (id: string, createdAt: number, status: SessionInfo['status'] = 'failed'): SessionInfo =>
  ({ id, jobId: 'j', createdAt, lastActivityAt: createdAt + 5, status, cost: 0.5, usage }) as SessionInfo
const ids = (jobs: Jobs) =>
  Object.fromEntries(Object.entries(columnsOf(jobs)).map(([name, all]) => [name, all.map(({ id }) => id)]))

t.test('each job is in its column, in the order in which somebody looks for it', async (t) => {
  const jobs = withJobs(new Map(), [
    job('later', { createdAt: 3 }),
    job('sooner', { createdAt: 2 }),
    job('again', { attempt: 2, nextRunAt: 50 }),
    job('runs', { status: 'running', startedAt: 10 }),
    job('runs-newer', { status: 'running', startedAt: 20 }),
    job('parked', { status: 'parked', parkedAt: 5 }),
    job('done', { status: 'succeeded', finishedAt: 5 }),
    job('failed', { status: 'failed', finishedAt: 9 }),
  ])
  t.strictSame(ids(jobs), {
    queued: ['sooner', 'later'],
    retrying: ['again'],
    running: ['runs-newer', 'runs'],
    parked: ['parked'],
    done: ['failed', 'done'],
  })
})

t.test('a page that is older than an event does not bring back what has ended', async (t) => {
  let jobs = withJobs(new Map(), [job('j', { status: 'running' })])
  jobs = withJobs(jobs, [job('j', { status: 'succeeded', finishedAt: 2 })])
  t.equal(withJobs(jobs, [job('j', { status: 'running' })]).get('j')!.status, 'succeeded')
  const retried = withJobs(new Map(), [job('j', { attempt: 2 })])
  t.equal(withJobs(retried, [job('j', { status: 'running' })]).get('j')!.attempt, 2)
  t.equal(withJobs(retried, [job('j', { attempt: 2, status: 'running' })]).get('j')!.status, 'running')
})

const drawn = (...given: Parameters<typeof attemptsOf>) => {
  const { kept, lostEarlier, lostLast } = attemptsOf(...given)
  return [lostEarlier, ...kept.map(({ number, sessionId }) => [number, sessionId]), lostLast].filter(Boolean)
}

t.test('attempts are numbered by the sessions that are there', async (t) => {
  const running = job('j', { status: 'running', attempt: 3, sessionId: 'c' })
  const other = { ...session('x', 1), jobId: 'another' }
  const { kept } = attemptsOf(running, [session('c', 30, 'running'), other, session('b', 20), session('a', 10)])
  t.strictSame(
    kept.map(({ number, sessionId, from, to }) => [number, sessionId, from, to]),
    [
      [1, 'a', 10, 15],
      [2, 'b', 20, 25],
      [3, 'c', 30, undefined],
    ],
  )
  t.equal(kept[0]!.tokens, 10)
  const waits = job('j', { status: 'queued', attempt: 2, sessionId: 'a' })
  t.strictSame(drawn(waits, [session('a', 10)]), [[1, 'a']], 'the attempt that is to come has no session yet')
  t.strictSame(drawn(job('j'), []), [], 'nor has the first')
  const unbuilt = job('j', { status: 'failed', attempt: 2, startedAt: 30, finishedAt: 40 })
  t.strictSame(
    drawn(unbuilt, [session('a', 10)]),
    [[1, 'a'], { count: 1, first: 2, from: 30, to: 40 }],
    'one whose runner could not be built never has one',
  )
})

t.test('attempts whose sessions are gone are told of, with a number where it is certain', async (t) => {
  const ended = job('j', { status: 'failed', attempt: 4, sessionId: 'd', startedAt: 40, finishedAt: 49, error: 'no' })
  const last = { count: 1, first: 4, from: 40, to: 49 }
  t.strictSame(drawn(ended, [session('d', 40)]), [{ count: 3, first: 1 }, [4, 'd']])
  t.strictSame(drawn(ended, []), [{ count: 3, first: 1 }, last])
  const three = [session('a', 10), session('b', 20), session('c', 30)]
  t.strictSame(drawn(ended, three), [[1, 'a'], [2, 'b'], [3, 'c'], last])
  t.strictSame(
    drawn(ended, [session('b', 20), session('d', 40)]),
    [{ count: 2 }, [undefined, 'b'], [4, 'd']],
    'which of the first three it was is not known',
  )
  const begins = job('j', { status: 'running', attempt: 2, sessionId: 'b', startedAt: 20 })
  t.strictSame(drawn(begins, [session('a', 10)]), [[1, 'a']], 'one that has just begun is not lost')
  const { sessionId: _, ...claimed } = begins
  t.strictSame(drawn(claimed, [session('a', 10)]), [[1, 'a']])
  const canceled = job('j', { status: 'canceled', attempt: 2, sessionId: 'a', startedAt: 10, finishedAt: 99 })
  t.strictSame(
    drawn({ ...canceled, error: 'no' }, []),
    [{ count: 1, first: 1, from: 10, to: undefined }],
    'what was canceled while it waited to be tried again did not begin again',
  )
  t.strictSame(drawn({ ...canceled, error: 'no' }, [session('a', 10)]), [[1, 'a']])
})

t.test('spans lie where they were, and none is too short to be seen or sticks out', async (t) => {
  const [first, second, third] = laidOut(
    [
      { from: 0, to: 50 },
      { from: 50, to: 50 },
      { from: 100, to: undefined },
    ],
    100,
  )
  t.match(first, { left: 0, width: 50 })
  t.match(second, { left: 50, width: 1.5 })
  t.equal(third!.left + third!.width, 100)
  t.strictSame(laidOut([], 5), [])
  t.match(laidOut([{ from: 3, to: 3 }], 5)[0], { left: 0 })
})
