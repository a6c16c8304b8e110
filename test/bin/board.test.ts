import { createLogUpdate } from 'log-update'
import t from 'tap'
import { Board } from '../../bin/terminal/board.js'
import type { JobInfo, QueueFrame, QueueStats } from '../../client/index.js'

const NO_USAGE: JobInfo['usage'] = {
  ...{ tokens: 0, inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 },
  ...{ cost: 0, numTurns: 0 },
}
const stats = { running: 1, maxConcurrency: 2, queued: 1, parked: 0, paused: false } as QueueStats
const attached: QueueFrame = { type: 'queue_attached', protocolVersion: 1, stats }

const job = (id: string, status: JobInfo['status'], more: Partial<JobInfo> = {}): JobInfo => ({
  id,
  status,
  profile: 'default',
  cwd: '/',
  prompt: `Do ${id}.`,
  attempt: 1,
  maxAttempts: 1,
  createdAt: 0,
  usage: NO_USAGE,
  ...more,
})
const told = (job: JobInfo): QueueFrame => ({
  type: 'job_event',
  event: { id: 'event', type: job.finishedAt === undefined ? 'job_started' : 'job_completed', ts: 0, job },
})

t.test('what ended while the gateway was away is not under way on the board when it is back', async (t) => {
  let listed = [job('first', 'running'), job('second', 'queued')]
  const board = new Board(async () => listed)
  await board.take(attached)
  t.match(board.text(24), /1\/2 running · 1 queued.*0\/2.*first.*running.*second.*queued/s)

  board.onConnection({ state: 'reconnecting', retryAt: 0, tries: 1 })
  t.match(
    board.text(24),
    /^The connection is lost\. Trying again…\n/,
    'figures of before are not shown as those of now',
  )

  // so many came since that neither is among the newest
  listed = [job('third', 'running')]
  board.onConnection({ state: 'live', transport: 'socket', isSynced: true })
  await board.take(attached)
  t.match(board.text(24), /^1\/2 running.*0\/1.*third/s)
  t.notMatch(board.text(24), /first|second/)
})

t.test('a board that is cut off again while it lists what there is goes on with what it has', async (t) => {
  let fails = false
  const board = new Board(async () => {
    if (fails) throw new Error('The gateway cannot be reached.')
    return [job('first', 'running')]
  })
  await board.take(attached)
  fails = true
  await board.take(attached)
  t.match(board.text(24), /first/)
  fails = false
  await board.take(told(job('first', 'succeeded', { finishedAt: 1 })))
  t.match(board.text(24), /1\/1.*first.*succeeded/s)
  await t.rejects(new Board(() => Promise.reject(new Error('No.'))).take(attached), { message: 'No.' })
})

t.test('a board counts all that has ended, and shows what ended last', async (t) => {
  const board = new Board(async () => [])
  await board.take(attached)
  for (let n = 1; n <= 9; n++)
    for (let times = 0; times < 2; times++) await board.take(told(job(`job-${n}`, 'succeeded', { finishedAt: n })))
  t.match(board.text(24), /9\/9.*job-9.*job-8.*job-7.*job-6.*job-5/s)
  t.notMatch(board.text(24), /job-4/)
})

t.test('a board of more jobs than a screen has lines shows its figures, and what runs first', async (t) => {
  const many = Array.from({ length: 60 }, (_, n) => job(`job-${n}`, n === 59 ? 'running' : 'queued'))
  const board = new Board(async () => many)
  await board.take(attached)
  const { columns } = process.stdout
  t.teardown(() => {
    process.stdout.columns = columns
  })
  for (const [rows, width] of [
    [24, 80],
    [40, 30],
    [6, 80],
  ] as const) {
    process.stdout.columns = width
    // what draws it cuts off the beginning of what has no room
    const drawn = () => {
      const written: string[] = []
      const screen = { rows, columns: width, write: (text: string) => written.push(text) }
      createLogUpdate(screen as never, { showCursor: true })(board.text(rows))
      return written.join('')
    }
    t.match(drawn(), /^1\/2 running.*job-59/s, `on ${rows} lines of ${width}`)
    board.onConnection({ state: 'reconnecting', retryAt: 0, tries: 1, error: new Error('Why. '.repeat(12)) as never })
    t.match(drawn(), /^The connection/, `on ${rows} lines of ${width}, and away`)
    board.onConnection({ state: 'live', transport: 'socket', isSynced: true })
  }
})
