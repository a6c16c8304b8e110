import pc from 'picocolors'
import { type Client, GatewayError, type JobInfo, type JobStatus } from '../../client/index.js'
import { Away } from '../terminal/away.js'
import { Board, JOB_COLUMNS, onScreen } from '../terminal/board.js'
import { type ConnectionOptions, connect } from '../terminal/connection.js'
import { CommandFailure, EXIT, offered, toEach } from '../terminal/exit.js'
import { jobId } from '../terminal/find.js'
import { Meanwhile } from '../terminal/meanwhile.js'
import {
  count,
  isTable,
  money,
  note,
  type OutputOptions,
  print,
  printList,
  printOne,
  safe,
  when,
} from '../terminal/output.js'
import { promptOf, type RunOptions, requestOf } from './run.js'

type Options = ConnectionOptions & OutputOptions

export interface SubmitOptions extends Options, RunOptions {
  attempts?: number
  maxTokens?: number
  maxDuration?: number
  priority?: number
  webhook?: string
  wait?: boolean
}

export async function submit(words: string[], options: SubmitOptions): Promise<void> {
  const gateway = connect(options)
  const { attempts, maxTokens, maxDuration, priority, webhook } = options
  const job = await withQueue(
    gateway.jobs.submit({
      session: requestOf(await promptOf(words), options),
      ...(attempts !== undefined && { attempts }),
      ...(maxTokens !== undefined && { maxTokens }),
      ...(maxDuration !== undefined && { maxDurationMs: maxDuration * 1000 }),
      ...(priority !== undefined && { priority }),
      ...(webhook !== undefined && { webhook: { url: webhook } }),
    }),
  )
  if (!options.wait) {
    if (isTable(options)) print(job.id)
    else printOne(job, [], options)
    return
  }
  note(pc.dim(`Job ${job.id}`))
  const aborter = new AbortController()
  const { onConnection } = new Away({ goesOn: goesOn(job.id), leave: (failure) => aborter.abort(failure) })
  // a second one ends the process by the signal
  process.once('SIGINT', () => aborter.abort(new CommandFailure(goesOn(job.id), EXIT.interrupted)))
  const ended = await gateway.jobs.wait(job.id, { signal: aborter.signal, onConnection })
  if (!isTable(options)) printOne(ended, [], options)
  else {
    const { result, error, status } = ended
    const isDone = status === 'succeeded'
    // only what the agent said is the result; one that has failed may have said something before
    if (result?.text || isDone) print(safe(result?.text ?? status))
    if (!isDone) note(pc.red(safe(error ?? `The job is ${status}.`)))
  }
  if (ended.status !== 'succeeded') process.exitCode = ended.status === 'canceled' ? EXIT.interrupted : EXIT.failed
}

const goesOn = (id: string): string => `The job goes on without you: session-gateway jobs watch ${id}`

export async function list(options: Options & { status?: JobStatus; limit?: number }): Promise<void> {
  const { status, limit } = options
  const jobs: JobInfo[] = []
  await withQueue(
    (async () => {
      for await (const job of connect(options).jobs.list({ ...(status && { status }) })) {
        if (jobs.length === limit) break
        jobs.push(job)
      }
    })(),
  )
  const none = status
    ? 'None of the jobs is like that. See all of them: session-gateway jobs ls'
    : 'There are no jobs. Submit one: session-gateway jobs submit "…"'
  printList(jobs, JOB_COLUMNS, options, none)
}

export async function show(prefix: string, options: Options): Promise<void> {
  const gateway = connect(options)
  const job = await withQueue(gateway.jobs.get(await jobId(gateway, prefix)))
  printOne(
    job,
    [
      ['id', job.id],
      ['status', job.status],
      ['prompt', job.prompt],
      ['profile', job.profile],
      ['directory', job.cwd],
      ['session', job.sessionId],
      ['attempt', `${job.attempt} of ${job.maxAttempts}`],
      ['created', when(job.createdAt)],
      ['started', when(job.startedAt)],
      ['next run', when(job.nextRunAt)],
      ['finished', when(job.finishedAt)],
      ['tokens', count(job.usage.tokens)],
      ['cost', money(job.usage.cost)],
      ['result', job.result?.text],
      ['error', job.error],
    ],
    options,
  )
}

export async function cancel(prefixes: string[], options: Options): Promise<void> {
  const gateway = connect(options)
  await toEach(prefixes, async (prefix) => {
    const job = await withQueue(gateway.jobs.cancel(await jobId(gateway, prefix)))
    note(`${job.id} is ${job.status}.`)
  })
}

/** Follows the queue: a live board on a terminal, a line an event elsewhere. Ends with Ctrl-C, or with the job that was named. */
export async function watch(prefix: string | undefined, options: Options): Promise<void> {
  const gateway = connect(options)
  const only = prefix === undefined ? undefined : await withQueue(jobId(gateway, prefix))
  const isBoard = process.stdout.isTTY && isTable(options)
  const aborter = new AbortController()
  const { signal } = aborter
  // also where an answer is waited for that does not come
  const leave = () => aborter.abort()
  let failure: CommandFailure | undefined
  const away = new Away({
    goesOn: only === undefined ? 'Its jobs go on without you.' : goesOn(only),
    leave: (why) => {
      failure = why
      leave()
    },
  })
  process.on('SIGINT', leave)
  const meanwhile = new Meanwhile()
  const board = isBoard ? new Board(() => firstJobs(gateway, signal)) : undefined
  let screen: ReturnType<typeof onScreen> | undefined
  let last: JobInfo | undefined
  let isEndTold = false
  try {
    // what is not there is waited for only where it was there before
    const first = only === undefined ? gateway.queue.stats({ signal }) : gateway.jobs.get(only, { signal })
    await withQueue<unknown>(first)
    if (board) screen = onScreen(board)
    const following = gateway.queue.watch({ signal })
    // a board says it itself, and stays
    following.onConnection(board ? board.onConnection : away.onConnection)
    for await (const frame of following) {
      if (frame.type === 'queue_attached' && only !== undefined) last = await gateway.jobs.get(only, { signal })
      if (frame.type === 'job_event' && (only === undefined || frame.event.job.id === only)) last = frame.event.job
      if (board) {
        await board.take(frame)
        screen?.draw()
      } else if (frame.type === 'queue_attached' && only === undefined) await tellOfEnded(gateway, meanwhile, signal)
      else if (frame.type === 'job_event' && (only === undefined || frame.event.job.id === only)) {
        const { type, job, progress } = frame.event
        meanwhile.take(job)
        isEndTold = job.finishedAt !== undefined
        if (options.output === 'json' || options.output === 'jsonl') print(JSON.stringify(frame.event))
        else print([job.id.slice(0, 8), type.slice(4), job.status, safe(progress?.preview ?? '')].join('  ').trimEnd())
      }
      if (only !== undefined && last?.finishedAt !== undefined) break
    }
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    process.off('SIGINT', leave)
    screen?.stop()
  }
  if (failure) throw failure
  if (only === undefined) return
  // left, or lost
  if (last?.finishedAt === undefined) throw new CommandFailure(goesOn(only), EXIT.interrupted)
  if (last.status === 'failed') throw new CommandFailure(last.error ?? 'The job failed.')
  if (last.status === 'canceled') throw new CommandFailure('The job was canceled.', EXIT.interrupted)
  // before it was followed, or while the gateway was away
  if (!board && !isEndTold) note(`The job has succeeded: session-gateway jobs show ${last.id}`)
}

const BECAME: Partial<Record<JobStatus, string>> = { failed: 'has failed', canceled: 'was canceled' }

/** A note: no event tells of it, and who reads events gets those alone. */
async function tellOfEnded(gateway: Client, meanwhile: Meanwhile, signal: AbortSignal): Promise<void> {
  const get = (id: string) =>
    gateway.jobs.get(id, { signal }).catch((error) => {
      if (error instanceof GatewayError && error.status === 404) return undefined
      throw error
    })
  // a gateway that is away again is asked once it is back
  const ended = await meanwhile.ended(() => firstJobs(gateway, signal), get).catch(() => [])
  for (const { id, status } of ended)
    note(`Meanwhile a job ${BECAME[status] ?? 'has succeeded'}: session-gateway jobs show ${id}`)
}

/** The newest, and of what is under way, which may be older than a page of them, too. */
async function firstJobs(gateway: Client, signal: AbortSignal): Promise<JobInfo[]> {
  const queries = [{}, { status: 'running' }, { status: 'parked' }] as const
  const pages = queries.map((query) =>
    gateway.jobs
      .list({ ...query, signal })
      .pages()
      [Symbol.asyncIterator]()
      .next(),
  )
  return (await Promise.all(pages)).flatMap(({ value }) => value ?? [])
}

const withQueue = <T>(call: Promise<T>): Promise<T> =>
  offered(call, 'This gateway has no queue. Its operator turns it on with "queue": {} in gateway.json.')
