import type { ChildProcess } from 'node:child_process'
import { finished, Readable } from 'node:stream'
import { type Deferred, deferred } from '../../../lib/deferred.js'
import { isRecord } from '../../../lib/json-value.js'
import { tried } from '../../../lib/tried.js'
import type { AgentProcess } from '../process.js'

/** Far more than any message has. The SDK reads lines of any length, until one is longer than a string can be. */
const MAX_LINE_BYTES = 128 * 1024 ** 2
const TOO_LONG = `The agent wrote a line of more than ${MAX_LINE_BYTES / 1024 ** 2} MiB, which is not read.`

const NEWLINE = 10
/** What is no object is shorter, where it is JSON at all. */
const SHORT = 64
/** In the lines of which the SDK takes for granted what they hold. */
const TAKEN_FOR_GRANTED = ['"control_re', '"is_error"'].map((mark) => Buffer.from(mark))

/**
 * The agent's process as the SDK has it. What the SDK fails at outside of anything that can be caught would be the end of the gateway, with
 * all sessions: that does not come to the SDK, and neither does what would end this session for a message that can be passed over.
 * @param isReadable whether a message can be read; tells of one that cannot
 */
export function heardBySdk(agent: AgentProcess, isReadable: (said: unknown) => boolean): ChildProcess {
  const stdout = linesOf(agent, (line) => asTakenForGranted(line, isReadable))
  return new Proxy<ChildProcess>(agent.child, {
    get(child, name) {
      if (name === 'stdout') return stdout
      const member = Reflect.get(child, name)
      return typeof member === 'function' ? member.bind(child) : member
    },
  })
}

/** @param taken what is to be read of a line, if anything */
function linesOf(agent: AgentProcess, taken: (line: Buffer) => Buffer | undefined): Readable {
  const { stdout } = agent.child
  let unread: Deferred<void> | undefined
  const lines = new Readable({
    read() {
      unread?.resolve()
      unread = undefined
    },
  })
  // where the SDK has failed it listens no more, and the agent may speak on for the time that it has to end
  lines.on('error', () => {})
  const push = (line: Buffer | undefined) => {
    if (line === undefined || lines.push(line)) return
    unread ??= deferred()
    agent.leaveUnread(unread.promise)
  }
  let begun: Buffer[] = []
  let begunBytes = 0
  const take = (piece: Buffer) => {
    let from = 0
    for (let end = piece.indexOf(NEWLINE); end !== -1; end = piece.indexOf(NEWLINE, from)) {
      const last = piece.subarray(from, end + 1)
      push(taken(begun.length === 0 ? last : Buffer.concat([...begun, last])))
      begun = []
      begunBytes = 0
      from = end + 1
    }
    if (from === piece.length) return
    begun.push(piece.subarray(from))
    begunBytes += piece.length - from
    if (begunBytes <= MAX_LINE_BYTES) return
    begun = []
    stdout.off('data', take).destroy()
    lines.destroy(new Error(TOO_LONG))
  }
  stdout.on('data', take)
  finished(stdout, { writable: false }, () => {
    if (lines.destroyed) return
    if (begun.length > 0) push(taken(Buffer.concat(begun)))
    lines.push(null)
  })
  return lines
}

/** What the SDK can read of a line; undefined: nothing. */
function asTakenForGranted(line: Buffer, isReadable: (said: unknown) => boolean): Buffer | undefined {
  if (line.length > SHORT && !TAKEN_FOR_GRANTED.some((mark) => line.includes(mark))) return line
  // what is no JSON it passes over itself
  const said = tried<unknown>(() => JSON.parse(line.toString()))
  if (said === undefined) return line
  const { type, is_error, subtype, errors } = isRecord(said) ? said : {}
  if (!isRecord(said) || type === 'control_response') return isReadable(said) ? line : undefined
  // the agent waits for an answer, which says that there is no such request
  if (type === 'control_request') return isReadable(said) ? line : asLine({ ...said, request: {} })
  const isFailure = type === 'result' && is_error === true && subtype !== 'success'
  return isFailure && !areTexts(errors) ? asLine({ ...said, errors: textsIn(errors) }) : line
}

const asLine = (message: object): Buffer => Buffer.from(`${JSON.stringify(message)}\n`)

const areTexts = (errors: unknown): boolean =>
  Array.isArray(errors) && errors.every((error) => typeof error === 'string')

/** Older agents tell none. */
const textsIn = (errors: unknown): string[] =>
  [errors ?? []].flat().map((error) => (typeof error === 'string' ? error : JSON.stringify(error)))
