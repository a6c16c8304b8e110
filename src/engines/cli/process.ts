import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { toError } from '../../errors.js'
import { ended } from '../../lib/sentence.js'
import { tried } from '../../lib/tried.js'
import { within } from '../../lib/within.js'
import { leash } from './leash.js'
import { PROCESS_MARK } from './markers.js'

/** How long an agent has between the request to end and its end. */
const STOP_GRACE_MS = 5_000
/** How long one that speaks no more has to end: what only wraps an agent, `docker run --rm` or `ssh`, tidies up after it first. */
export const LAST_WORDS_MS = 3_000
/** What it said may arrive after its exit; a child that it left behind may keep the pipes open for ever. */
const TRAILING_MS = 250
/** Who ends it from outside, a service manager perhaps, may be about to end the gateway, too: its end is no failure then, and told so late. */
const TOGETHER_MS = 1_000
/** Signals, and how a program that heeds them exits. */
const FROM_OUTSIDE: readonly unknown[] = ['SIGTERM', 'SIGINT', 'SIGHUP', 143, 130, 129, 0]
const POLL_MS = 10
const MAX_POLL_MS = 250
const STDERR_TAIL = 4_096

export interface ProcessExit {
  code: number | null
  signal: NodeJS.Signals | null
  /** Why it never ran. */
  error?: Error
}

export interface SpawnRequest {
  command: string
  args: readonly string[]
  /** The whole environment: nothing is inherited. With `markerEnv` in it, what it leaves behind is found. */
  env: NodeJS.ProcessEnv
  cwd: string
}

/**
 * An agent's process and all that it starts. It leads a process group of its own, so that the group can be ended with it, and carries
 * the marker by which what left the group is found.
 */
export class AgentProcess {
  readonly child: ChildProcessWithoutNullStreams
  /** Settles when the agent's own process is gone; never rejects. */
  readonly exited: Promise<ProcessExit>
  readonly #mark: string | undefined
  readonly #saidAll: Promise<void>
  #hasExited = false
  #stderr = ''
  #stopping: Promise<void> | undefined
  #lastWords: Promise<string> | undefined
  /** Each keeps its standard output unread until it settles. */
  readonly #unreadUntil = new Set<Promise<void>>()
  #isPaused = false

  constructor({ command, args, env, cwd }: SpawnRequest) {
    this.#mark = env[PROCESS_MARK]
    void leash.hold()
    this.child = spawn(command, args, { cwd, env, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
    this.exited = new Promise((done) => {
      this.child.once('exit', (code, signal) => {
        this.#hasExited = true
        done({ code, signal })
      })
      this.child.on('error', (error) => {
        if (this.child.pid === undefined) done({ code: null, signal: null, error: whyNotRun(error, command, cwd) })
      })
    })
    // without descriptors there are not even streams
    if (!this.child.stdin) throw new Error(`spawn ${command}: ${NO_MORE_FILES}`)
    if (this.pid !== undefined) void leash.mind(this.pid, this.exited)
    // Writing to an agent that has just died is told by its exit.
    this.child.stdin.on('error', () => {})
    this.child.stdout.on('error', () => {})
    this.child.stderr.on('error', () => {})
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-STDERR_TAIL)
    })
    this.#saidAll = new Promise((done) => this.child.stderr.once('close', done))
    void this.#letGoOfPipe()
  }

  get pid(): number | undefined {
    return this.child.pid
  }

  /** How much of its standard output was read. */
  get saidBytes(): number {
    return (this.child.stdout as Socket).bytesRead
  }

  /** Its end is known by the end of what it says: what it left behind is ended, where that would be in between. */
  async #letGoOfPipe(): Promise<void> {
    const said = new Promise((done) => this.child.stdout.once('close', done))
    await this.exited
    await within(TRAILING_MS, said)
    const stdout = this.child.stdout as Socket
    if (!stdout.destroyed && this.#mark !== undefined) await leash.sweep(this.#mark)
    // what bears no mark, or may not be ended, holds it still: no more is said in it once nothing comes
    for (let read = -1; !stdout.destroyed && (stdout.isPaused() || read < stdout.bytesRead); ) {
      read = stdout.bytesRead
      await within(TRAILING_MS, said)
    }
    if (!stdout.destroyed) stdout.push(null)
  }

  /** Reads no more of its standard output until then, so that its pipe fills and it waits. */
  leaveUnread(until: Promise<void>): void {
    if (this.#unreadUntil.has(until)) return
    this.#unreadUntil.add(until)
    this.child.stdout.pause()
    void Promise.race([until, this.exited]).then(() => {
      this.#unreadUntil.delete(until)
      if (this.#unreadUntil.size === 0 && !this.#isPaused) this.child.stdout.resume()
    })
  }

  /** Stops it and all that it started. What it has said already is left unread. */
  pause(): void {
    if (this.#isPaused || this.#stopping || this.#hasExited || this.pid === undefined) return
    this.#isPaused = true
    // at once; the leash finds what is elsewhere, and keeps it all so
    signalGroup(this.pid, 'SIGSTOP')
    void leash.pause(this.pid, this.#mark)
    this.child.stdout.pause()
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    if (this.pid === undefined) return
    void leash.resume(this.pid)
    if (this.#hasExited) return
    signalGroup(this.pid, 'SIGCONT')
    if (this.#unreadUntil.size === 0) this.child.stdout.resume()
  }

  /** What it last wrote to its standard error, at most 4 KiB, without what would colour a terminal. */
  get stderrTail(): string {
    return stripVTControlCharacters(this.#stderr).trim()
  }

  /** The end of that, to stand behind a sentence; empty when it wrote nothing. */
  get saying(): string {
    return this.stderrTail && ` It said: ${this.stderrTail.slice(-1_000)}`
  }

  /**
   * How it ended, in a sentence for a person, with what it last said. One that speaks no more and does not end either is ended first.
   */
  lastWords(): Promise<string> {
    this.#lastWords ??= this.#sayEnd()
    return this.#lastWords
  }

  async #sayEnd(): Promise<string> {
    let closed: string | undefined
    const timer = setTimeout(() => {
      if (!this.#stopping) closed = this.#closedPipe
      void this.stop()
    }, LAST_WORDS_MS)
    const { code, signal, error } = await this.exited
    const hint = signal === 'SIGKILL' && !this.#stopping ? ', as the system does when it runs out of memory' : ''
    clearTimeout(timer)
    if (error) return `The agent could not be started: ${ended(error.message)}`
    await within(TRAILING_MS, this.#saidAll)
    if (!this.#stopping && FROM_OUTSIDE.includes(signal ?? code)) await sleep(TOGETHER_MS)
    if (closed) {
      const seconds = LAST_WORDS_MS / 1_000
      return `The agent closed its standard ${closed}, did not end within ${seconds} s, and was ended.${this.saying}`
    }
    const how = signal ? `was ended by ${signal}${hint}` : `exited with code ${code}`
    return `The agent ${how}.${this.saying}`
  }

  /** By which of its pipes it can be spoken with no more. */
  get #closedPipe(): 'output' | 'input' | undefined {
    const { stdin, stdout } = this.child
    if (stdout.readableEnded) return 'output'
    return stdin.errored ? 'input' : undefined
  }

  /**
   * Ends the agent and all that it started: SIGTERM to the group, SIGKILL to what is left of it after the grace, then SIGKILL to what
   * had left the group. What is paused gets no grace: it is not to act again.
   */
  stop(graceMs = STOP_GRACE_MS): Promise<void> {
    this.#stopping ??= this.#end(this.#isPaused ? 0 : graceMs)
    return this.#stopping
  }

  async #end(graceMs: number): Promise<void> {
    if (this.pid !== undefined) {
      // Once the leader is reaped its number may be another's; what it left behind is then found by its marker alone.
      if (!this.#hasExited) await this.#endGroup(this.pid, graceMs)
      await this.exited
      if (this.#mark !== undefined) await leash.sweep(this.#mark)
      // what hid elsewhere was stopped until then
      if (this.#isPaused) await leash.resume(this.pid)
    }
    this.child.stdin.destroy()
    this.child.stdout.destroy()
    this.child.stderr.destroy()
  }

  async #endGroup(group: number, graceMs: number): Promise<void> {
    // not by the wall clock, which may be set meanwhile
    const deadline = performance.now() + graceMs
    if (this.#isPaused) {
      signalGroup(group, 'SIGKILL')
      return
    }
    signalGroup(group, 'SIGTERM')
    await within(graceMs, this.exited)
    // What it started has heard the signal, too, and mostly is as quick.
    for (let pollMs = POLL_MS; signalGroup(group, 0); pollMs = Math.min(2 * pollMs, MAX_POLL_MS)) {
      if (performance.now() >= deadline) {
        signalGroup(group, 'SIGKILL')
        return
      }
      if (!(await leash.isGroupAlive(group))) return
      await sleep(pollMs)
    }
  }
}

const FEWER = 'or run fewer sessions at once (maxSessions)'
const NO_PROCESSES = `this account may have no more processes or threads: raise TasksMax or LimitNPROC of the systemd unit or ulimit -u, ${FEWER}`
const NO_MORE_FILES = `the gateway may have no more files open: raise LimitNOFILE of the systemd unit or ulimit -n, ${FEWER}`

/** The system says of a file that is there that it is not, where what is to run it is missing, and of what is short no more than a name. */
function whyNotRun(thrown: unknown, command: string, cwd: string): Error {
  const error = toError(thrown)
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EAGAIN') return new Error(`${error.message}: ${NO_PROCESSES}`, { cause: error })
  const isThere = code === 'ENOENT' && existsSync(command) && existsSync(cwd)
  if (!isThere) return error
  const needs = 'the program that its first line names, or the C library that it was built for'
  return new Error(`${command} is there, but not what it needs to run (${needs})`, { cause: error })
}

/** @returns whether there is such a group */
const signalGroup = (group: number, signal: NodeJS.Signals | 0): boolean =>
  tried(() => process.kill(-group, signal)) ?? false
