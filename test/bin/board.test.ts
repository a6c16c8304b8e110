import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Board, onScreen } from '../../bin/terminal/board.js'
import type { JobInfo, QueueFrame, QueueStats } from '../../client/index.js'
import { shownBy } from '../fixtures/screen.js'

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

/** A board on a terminal of this size, which may change. */
function drawn(t: Test, board: Board, columns: number, rows: number) {
  const { stdout } = process
  const before = { columns: stdout.columns, rows: stdout.rows }
  const { write } = stdout
  Object.assign(stdout, { columns, rows })
  const screen = onScreen(board)
  t.teardown(() => {
    screen.stop()
    Object.assign(stdout, before)
  })
  let written = ''
  const type = (text: string) => {
    written += text
    return true
  }
  /** A terminal goes to the beginning of a line with its end. */
  const seen = () => written.replaceAll('\n', '\r\n')
  /** Until it is drawn; what the test itself reports goes the same way. */
  const drawing = async (act: () => void) => {
    stdout.write = type
    act()
    await setImmediate()
    stdout.write = write
  }
  return {
    type,
    draw: () => drawing(screen.draw),
    async resize(columns: number) {
      // a terminal breaks anew what stands there
      written = shownBy(seen(), stdout).join('\n')
      await drawing(() => Object.assign(stdout, { columns }).emit('resize'))
    },
    goOn: () => drawing(() => process.emit('SIGCONT')),
    /** What is seen, the line of the cursor included. */
    get lines() {
      return shownBy(seen(), stdout).slice(-rows)
    },
  }
}

t.test('a board of more jobs than a screen has lines shows its figures, and what runs first', async (t) => {
  const many = Array.from({ length: 60 }, (_, n) => job(`job-${n}`, n === 59 ? 'running' : 'queued'))
  for (const [rows, width] of [
    [24, 80],
    [40, 30],
    [6, 80],
    [12, 20],
    [5, 20],
  ] as const)
    await t.test(`on ${rows} lines of ${width}`, async (t) => {
      const board = new Board(async () => many)
      await board.take(attached)
      const screen = drawn(t, board, width, rows)
      await screen.draw()
      t.match(screen.lines.join(''), rows > 5 ? /^1\/2 running.*job-59/s : /^1\/2 running/)
      board.onConnection({ state: 'reconnecting', retryAt: 0, tries: 1, error: new Error('Why. '.repeat(12)) as never })
      await screen.draw()
      t.match(screen.lines.join(''), /^The connection/)
    })
})

t.test('a board is drawn over the one before, however many jobs come and go', async (t) => {
  const ended = [1, 2, 3].map((n) => job(`end-${n}`, 'succeeded', { finishedAt: n }))
  const board = new Board(async () => ended)
  await board.take(attached)
  const screen = drawn(t, board, 80, 24)
  screen.type('$ session-gateway jobs watch\n')
  await screen.draw()
  const jobs = () => screen.lines.flatMap((line) => /^(?:end|job)-\d/.exec(line)?.[0] ?? [])
  t.strictSame(jobs(), ['end-3', 'end-2', 'end-1'])
  await board.take(told(job('job-1', 'running')))
  await board.take(told(job('job-2', 'queued')))
  await screen.draw()
  t.strictSame(jobs(), ['job-1', 'job-2', 'end-3', 'end-2', 'end-1'])
  await board.take(told(job('job-1', 'succeeded', { finishedAt: 4 })))
  await screen.draw()
  t.strictSame(jobs(), ['job-2', 'job-1', 'end-3', 'end-2', 'end-1'])

  await t.test('also in a window that became narrower', async () => {
    await screen.resize(21)
    t.strictSame(jobs(), ['job-2', 'job-1', 'end-3', 'end-2', 'end-1'])
    t.match(screen.lines.join(''), /jobs watch1\/2 running/)
  })

  await t.test('but not over what the shell has written while the job was stopped', async () => {
    screen.type('^Z\nStopped\n$ fg\n')
    await screen.goOn()
    t.match(screen.lines.join('\n'), /\$ fg\n1\/2 running/)
  })
})
