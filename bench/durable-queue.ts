import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DiskProbe } from './lib/disk-probe.js'
import { format, interleave, line, median } from './lib/figures.js'
import { RawHttp } from './lib/raw-http.js'
import { ServerProcess } from './lib/server-process.js'

const BACKLOGS = [
  { slots: 1, jobs: 250, perSecond: undefined, cpuMs: 0.4 },
  { slots: 8, jobs: 1_500, perSecond: 8_000, cpuMs: 0.25 },
  { slots: 50, jobs: 3_000, perSecond: 15_000, cpuMs: 0.25 },
] as const
const ROUNDS = 5
/** Jobs that a queue has done before it is measured: V8 goes on compiling what it runs for as many. */
const WARM_UP = 6_000
const OVER_HTTP = 2_000
/** In memory so many a second with one slot. */
const OVER_HTTP_IN_MEMORY = { slots: 1, perSecond: 10_000 }
const HTTP_SLOTS = [OVER_HTTP_IN_MEMORY.slots, 8] as const
const CONNECTIONS = 20
const OVER_HTTP_TARGET = 0.8
const BODY = JSON.stringify({ session: { cwd: tmpdir(), prompt: 'Nothing.' } })

interface Drained {
  ms: number
  calls: number
  commits: number
}

/** A queue that is kept on disk, with the options that it has by default: beside one in memory, and beside what the disk allows. */
export async function durableQueue(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'bench-queue-'))
  const disk = await DiskProbe.open(folder)
  try {
    for (const backlog of BACKLOGS) await drains(folder, disk, backlog)
    for (const slots of HTTP_SLOTS) await overHttp(folder, slots)
    console.log(`${disk}`)
  } finally {
    await disk.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

/** Jobs that wait while the slots are taken, from the moment that they may run until the last one has ended. */
async function drains(
  folder: string,
  disk: DiskProbe,
  { slots, jobs, perSecond, cpuMs }: (typeof BACKLOGS)[number],
): Promise<void> {
  const [sqlite, memory] = await Promise.all([start('sqlite', folder, slots), start('memory', folder, slots)])
  const drained: Drained[] = []
  const toTransactions: number[] = []
  const rates = new Map<ServerProcess, number[]>([
    [sqlite, []],
    [memory, []],
  ])
  const drain = (server: ServerProcess) => async () => {
    const transactions = server === sqlite ? await disk.measure() : 0
    await server.call('submit', jobs)
    let outcome!: Drained
    const spent = await server.cpuOf(async () => {
      outcome = await server.call<Drained>('drain', jobs)
    })
    const rate = (jobs / outcome.ms) * 1000
    rates.get(server)!.push(rate)
    if (server === sqlite) {
      drained.push(outcome)
      toTransactions.push(rate / transactions)
    }
    return spent / jobs / 1000
  }
  for (const server of [sqlite, memory])
    for (let done = 0; done < WARM_UP; done += jobs) {
      await server.call('submit', jobs)
      await server.call('drain', jobs)
    }
  const cpu = await interleave(ROUNDS, drain(sqlite), drain(memory))
  const rate = (server: ServerProcess) => median(rates.get(server)!)
  const perJob = (what: 'calls' | 'commits') => format(median(drained.map((one) => one[what])) / jobs)
  const target = perSecond === undefined ? '' : atLeast(rate(sqlite), perSecond)
  console.log(line(`a job of a backlog on disk, ${slots} slots, CPU against memory`, cpu, 'ms'))
  console.log(
    `  ${format(rate(sqlite))} jobs a second on disk${target}, ${format(rate(memory))} in memory;` +
      ` ${format(median(toTransactions))} for each transaction a second that the disk allows;` +
      ` ${perJob('calls')} database calls and ${perJob('commits')} transactions a job` +
      `  [target <= ${cpuMs} ms CPU: ${median(cpu.ours) <= cpuMs ? 'met' : 'MISSED'}]`,
  )
  await Promise.all([sqlite.stop(), memory.stop()])
}

/** Jobs that are submitted by several connections while earlier ones run. */
async function overHttp(folder: string, slots: number): Promise<void> {
  const [sqlite, memory] = await Promise.all([start('sqlite', folder, slots), start('memory', folder, slots)])
  const [onDisk, inMemory] = await Promise.all([submitter(sqlite), submitter(memory)])
  for (const { rate } of [onDisk, inMemory]) for (let done = 0; done < WARM_UP; done += OVER_HTTP) await rate()
  const rates = await interleave(ROUNDS, onDisk.rate, inMemory.rate)
  const ratio = median(rates.ours.map((value, round) => value / rates.baseline[round]!))
  console.log(
    `${line(`${OVER_HTTP} jobs submitted over HTTP, ${slots} slots, jobs a second against memory`, rates, 'jobs/s')}` +
      `${atLeast(ratio, OVER_HTTP_TARGET)}`,
  )
  const { perSecond } = OVER_HTTP_IN_MEMORY
  if (slots === OVER_HTTP_IN_MEMORY.slots)
    console.log(`  in memory ${format(median(rates.baseline))} a second${atLeast(median(rates.baseline), perSecond)}`)
  for (const { close } of [onDisk, inMemory]) close()
  await Promise.all([sqlite.stop(), memory.stop()])
}

const start = (kind: 'sqlite' | 'memory', folder: string, slots: number): Promise<ServerProcess> =>
  ServerProcess.start('servers/durable-queue.js', { argv: [kind, join(folder, `${slots}`), `${slots}`] })

async function submitter(server: ServerProcess) {
  const url = await server.call<string>('url')
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => RawHttp.open(url)))
  const rate = async () => {
    await server.call('expect', OVER_HTTP)
    const start = performance.now()
    let left = OVER_HTTP
    await Promise.all(
      connections.map(async (connection) => {
        while (left-- > 0) {
          const { status } = await connection.request('POST', '/v1/jobs', BODY)
          if (status !== 201) throw new Error(`submitting a job answered ${status}`)
        }
      }),
    )
    await server.call('ended')
    return (OVER_HTTP / (performance.now() - start)) * 1000
  }
  const close = () => {
    for (const connection of connections) connection.close()
  }
  return { rate, close }
}

const atLeast = (value: number, target: number): string =>
  `  [target >= ${target}: ${value >= target ? 'met' : 'MISSED'}]`
