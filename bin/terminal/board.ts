import pc from 'picocolors'
import type { ConnectionState, JobInfo, JobStatus, QueueFrame, QueueStats } from '../../client/index.js'
import { ago, type Column, count, duration, oneLine, renderTable, rowsOf, screenHeight, screenWidth } from './output.js'

/** Jobs that have ended stay on the board as long. */
const BOARD_ENDED = 5
const BAR = 20

export const JOB_COLUMNS: Column<JobInfo>[] = [
  { title: 'id', of: ({ id }) => id.slice(0, 8), isWhole: true },
  {
    title: 'status',
    of: ({ status, attempt, maxAttempts }) => (maxAttempts > 1 ? `${status} ${attempt}/${maxAttempts}` : status),
  },
  { title: 'profile', of: ({ profile }) => profile },
  { title: 'created', of: ({ createdAt }) => ago(createdAt) },
  { title: 'tokens', of: ({ usage }) => count(usage.tokens) },
  { title: 'prompt', of: ({ prompt }) => prompt, isWide: true },
]

const BOARD_COLUMNS: Column<JobInfo>[] = [
  ...JOB_COLUMNS.slice(0, 3),
  {
    title: 'time',
    of: ({ startedAt, finishedAt }) => (startedAt ? duration((finishedAt ?? Date.now()) - startedAt) : ''),
  },
]

/** What runs is what a board is looked at for, and then what waits for somebody. */
const URGENCY: JobStatus[] = ['running', 'parked', 'queued']
const byUrgency = (a: JobInfo, b: JobInfo): number => URGENCY.indexOf(a.status) - URGENCY.indexOf(b.status)

/** The queue at a glance: its figures, what is under way, and what has ended last. */
export class Board {
  readonly #list: () => Promise<JobInfo[]>
  readonly #open = new Map<string, JobInfo>()
  readonly #ended = new Set<string>()
  #endedLast: JobInfo[] = []
  readonly #previews = new Map<string, string>()
  #stats: QueueStats | undefined
  #hasBegun = false
  /** Why what is shown may be of before; undefined: it is not. */
  #away: string | undefined

  /** @param list the newest jobs and those under way */
  constructor(list: () => Promise<JobInfo[]>) {
    this.#list = list
  }

  /** To be told what becomes of the connection. */
  readonly onConnection = (connection: ConnectionState): void => {
    if (connection.state === 'reconnecting') this.#away = connection.error?.message ?? this.#away ?? ''
    else if (connection.state === 'live') this.#away = undefined
  }

  /** @throws what the first list is refused with */
  async take(frame: QueueFrame): Promise<void> {
    if ('stats' in frame) this.#stats = frame.stats
    if (frame.type === 'job_event') {
      const { job, progress } = frame.event
      this.#set(job)
      if (progress && job.finishedAt === undefined) this.#previews.set(job.id, progress.preview)
    }
    if (frame.type === 'queue_attached') await this.#begin()
  }

  /** There is no replay: what has ended meanwhile would stay on the board for ever. */
  async #begin(): Promise<void> {
    const jobs = await this.#list().catch((error) => {
      if (!this.#hasBegun) throw error
    })
    // lost again: they are listed once it is back
    if (!jobs) return
    this.#hasBegun = true
    for (const known of [this.#open, this.#ended, this.#previews]) known.clear()
    this.#endedLast = []
    for (const job of jobs) this.#set(job)
  }

  #set(job: JobInfo): void {
    if (job.finishedAt === undefined) {
      this.#open.set(job.id, job)
      return
    }
    this.#open.delete(job.id)
    this.#previews.delete(job.id)
    this.#ended.add(job.id)
    this.#endedLast = [...this.#endedLast.filter(({ id }) => id !== job.id), job]
      .sort((a, b) => b.finishedAt! - a.finishedAt!)
      .slice(0, BOARD_ENDED)
  }

  /** As it is shown on a screen of so many lines, the last of which is the cursor's: what has no room is cut off at the end. */
  text(rows: number): string {
    const open = [...this.#open.values()].sort(byUrgency)
    const shown = [...open, ...this.#endedLast].slice(0, rows)
    const now: Column<JobInfo> = {
      title: 'now',
      of: (job) => this.#previews.get(job.id) ?? job.error ?? job.prompt,
      isWide: true,
    }
    const done = this.#ended.size
    const bar = progressBar(done, done + open.length)
    return firstRows(`${this.#head(rows - 1)}\n${bar}\n\n${renderTable(shown, [...BOARD_COLUMNS, now])}`, rows - 1)
  }

  #head(rows: number): string {
    if (this.#away !== undefined)
      return pc.yellow(oneLine(`The connection is lost. Trying again… ${this.#away}`, rows * screenWidth()))
    if (!this.#stats) return 'connecting…'
    const { running, maxConcurrency, queued, parked, paused } = this.#stats
    const isPaused = paused ? pc.yellow(' · paused: the daily budget is used up') : ''
    return `${running}/${maxConcurrency} running · ${queued} queued · ${parked} parked${isPaused}`
  }
}

/** The first lines of a text, as many as take so many rows of the screen: what has left the screen cannot be drawn over. */
function firstRows(text: string, rows: number): string {
  const lines = text.split('\n')
  let used = 0
  const isOver = (line: string): boolean => {
    used += rowsOf(line)
    return used > rows
  }
  const end = lines.findIndex(isOver)
  return lines.slice(0, end < 0 ? lines.length : end).join('\n')
}

/** What is done of what is known, as a bar. */
function progressBar(done: number, all: number): string {
  const filled = all === 0 ? 0 : Math.round((done / all) * BAR)
  return `${pc.green('█'.repeat(filled))}${pc.dim('░'.repeat(BAR - filled))} ${done}/${all}`
}

/**
 * Draws a board over itself with each change, and once a second for what tells the time.
 * @returns what has it drawn, and what ends that
 */
export function onScreen(board: Board): { draw(): void; stop(): void } {
  let drawn = ''
  let soon: NodeJS.Immediate | undefined
  const drawNow = () => {
    clearImmediate(soon)
    soon = undefined
    const text = `${board.text(screenHeight())}\n`
    if (text === drawn) return
    const lines = drawn.split('\n').slice(0, -1)
    // as many as they are by now: a window that became narrower has broken them
    const rows = lines.reduce((sum, line) => sum + rowsOf(line), 0)
    process.stdout.write(`${rows > 0 ? `\r\x1b[${rows}A\x1b[J` : ''}${text}`)
    drawn = text
  }
  /** Once the signals that have come are known, of a job that goes on, say. */
  const draw = () => {
    soon ??= setImmediate(drawNow)
  }
  /** Below what the shell has written since the job was stopped. */
  const goOn = () => {
    drawn = ''
    draw()
  }
  const timer = setInterval(draw, 1000)
  process.stdout.on('resize', draw)
  process.on('SIGCONT', goOn)
  return {
    draw,
    stop() {
      clearInterval(timer)
      process.stdout.off('resize', draw)
      process.off('SIGCONT', goOn)
      drawNow()
    },
  }
}
