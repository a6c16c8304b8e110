import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable, Writable } from 'node:stream'
import { tried } from '../../lib/tried.js'
import { type LeashTask, leashProgram } from './leash-program.js'
import { endStragglers, ownerMark, PROCESS_MARK } from './markers.js'

/** How long agents work on once the gateway is stopped. */
const LOOK_MS = 500
/** One that dies at once is not started again and again. */
const RESTART_MS = 1_000

type Answer = (result: unknown) => void

/** The process that outlives this one by a moment. */
interface Keeper {
  child: ChildProcessByStdio<Writable, Readable, null>
  waiting: Map<number, Answer>
}

/**
 * A small process beside the gateway that ends the gateway's agents when the gateway dies, also by SIGKILL, that stops them while the
 * gateway is stopped, or its lease has run out, and that looks through the machine's processes in its stead. There is one for all agents. It needs Node alone, and
 * is no reason for the gateway to stay.
 */
export class Leash {
  #keeper: Promise<Keeper | undefined> | undefined
  #lastId = 0
  /** The process groups of agents that run. */
  readonly #groups = new Set<number>()
  /** Those of them that are paused, with their marks. */
  readonly #paused = new Map<number, string | undefined>()
  /** When agents may not work any more, by `performance.now()`. */
  #leaseUntil: number | undefined
  #hasDied = false

  /** Starts it, unless it runs: from then on no agent outlives this process. */
  hold(): Promise<Keeper | undefined> {
    this.#keeper ??= this.#start()
    return this.#keeper
  }

  /** Minds an agent until it is over: as long as there is one, there is a process beside the gateway. */
  async mind(group: number, over: Promise<unknown>): Promise<void> {
    this.#groups.add(group)
    tell(await this.hold(), { began: group })
    await over
    this.#groups.delete(group)
    tell(await this.#keeper, { ended: group })
  }

  /** Keeps an agent stopped, with all that it started. */
  async pause(group: number, mark: string | undefined): Promise<void> {
    this.#paused.set(group, mark)
    tell(await this.hold(), { pause: group, mark })
  }

  async resume(group: number): Promise<void> {
    if (this.#paused.delete(group)) tell(await this.#keeper, { resume: group })
  }

  /**
   * Lets agents work for so long, should nothing more be said: whatever becomes of this process, they are stopped then, until it is said
   * again. Not said yet, or `undefined`: for as long as this process works.
   */
  async lease(leftMs: number | undefined): Promise<void> {
    this.#leaseUntil = leftMs === undefined ? undefined : performance.now() + leftMs
    // one that is started later is told then
    tell(await this.#keeper, { lease: leftMs ?? null })
  }

  /** Whether anything lives in a process group but zombies, which nobody may ever reap in a container without an init. */
  async isGroupAlive(group: number): Promise<boolean> {
    return (await this.#ask({ group })) !== false
  }

  /** Ends what a process left behind in process groups of its own. */
  async sweep(mark: string): Promise<void> {
    if ((await this.#ask({ mark })) === undefined) await endStragglers(mark)
  }

  async #start(): Promise<Keeper | undefined> {
    const task: LeashTask = {
      ...{ gateway: process.pid, ownerMark: await ownerMark(), processMark: `${PROCESS_MARK}=`, list: '/proc' },
      ...{ everyMs: LOOK_MS, isSuccessor: this.#hasDied },
    }
    const program = `(${leashProgram.toString()})(${JSON.stringify(task)})`
    const startedAt = performance.now()
    const startLater = () => {
      this.#keeper = undefined
      this.#hasDied = true
      const hasLasted = performance.now() - startedAt > RESTART_MS
      setTimeout(() => this.#groups.size > 0 && this.hold(), hasLasted ? 0 : RESTART_MS).unref()
    }
    const child = spawned(program)
    if (!child) {
      startLater()
      return undefined
    }
    const keeper: Keeper = { child, waiting: new Map() }
    let isOver = false
    const end = () => {
      // told twice of one that could not be started: the next one may be there by then
      if (isOver) return
      isOver = true
      for (const answer of keeper.waiting.values()) answer(undefined)
      keeper.waiting.clear()
      startLater()
    }
    child.once('error', end)
    child.once('exit', end)
    child.stdin.on('error', () => {})
    let begun = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      const lines = (begun + text).split('\n')
      begun = lines.pop()!
      for (const line of lines) {
        const { id, result } = JSON.parse(line)
        keeper.waiting.get(id)?.(result)
        keeper.waiting.delete(id)
      }
    })
    if (this.#leaseUntil !== undefined) tell(keeper, { lease: this.#leaseUntil - startedAt })
    for (const group of this.#groups) tell(keeper, { began: group })
    for (const [pause, mark] of this.#paused) tell(keeper, { pause, mark })
    child.unref()
    for (const stream of [child.stdin, child.stdout]) (stream as unknown as { unref(): void }).unref()
    return child.pid === undefined ? undefined : keeper
  }

  async #ask(question: { group: number } | { mark: string }): Promise<unknown> {
    const keeper = await this.hold()
    if (!keeper || keeper.child.exitCode !== null || keeper.child.signalCode !== null) return undefined
    const id = ++this.#lastId
    // Kept awake only while somebody waits.
    const pipe = keeper.child.stdout as unknown as { ref(): void; unref(): void }
    pipe.ref()
    const answer = await new Promise<unknown>((resolve) => {
      keeper.waiting.set(id, resolve)
      tell(keeper, { id, ...question })
    })
    if (keeper.waiting.size === 0) pipe.unref()
    return answer
  }
}

/** Of its own session, so that what ends the gateway's process group does not end it first. @returns undefined: refused at once */
const spawned = (program: string): Keeper['child'] | undefined =>
  tried(() =>
    spawn(process.execPath, ['--max-semi-space-size=1', '-e', program], {
      ...{ cwd: '/', env: {}, detached: true, stdio: ['pipe', 'pipe', 'ignore'] },
    }),
  ) as Keeper['child'] | undefined

function tell(keeper: Keeper | undefined, told: object): void {
  keeper?.child.stdin.write(`${JSON.stringify(told)}\n`)
}

export const leash = new Leash()
