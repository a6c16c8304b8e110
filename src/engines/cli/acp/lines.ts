import { finished, type Readable, Writable } from 'node:stream'
import { ndJsonStream, type Stream } from '@agentclientprotocol/sdk'
import { deferred } from '../../../lib/deferred.js'
import type { AgentProcess } from '../process.js'
import { answerIn, askIn, isAsk, isOtherUpdate, type Unreadable, wrongIn } from './readable.js'

type Message = Stream['readable'] extends ReadableStream<infer T> ? T : never

/** So much an agent may say while it reads nothing of what it is told: each line of its own may have an answer that waits. */
const MAX_SAID_DEAF = 4 * 1024 ** 2

/** Not the protocol's: what is told by it the SDK does not know, and would refuse. */
export const OTHER_UPDATE = 'session-gateway/other_update'

/**
 * The messages of a process. The SDK writes what it cannot place, or read, to the standard error of its host: that does not come to it.
 * @param onUnreadable is told of what is passed over, and of what is asked in another shape
 */
export function linesOf(agent: AgentProcess, onUnreadable: (unreadable: Unreadable) => void = () => {}): Stream {
  const { stdin, stdout } = agent.child
  const stream = ndJsonStream(Writable.toWeb(stdin), saidBy(stdout, stdin, heldBack(agent)))
  const writer = stream.writable.getWriter()
  const asked = new Set<unknown>()
  return {
    writable: new WritableStream<Message>({
      write(message) {
        if ('method' in message && 'id' in message) asked.add(message.id)
        return writer.write(message)
      },
    }),
    readable: stream.readable.pipeThrough(
      new TransformStream<Message, Message>({
        transform(message, controller) {
          if (!('method' in message)) {
            // no answer, or one to nothing that it was asked, or once more
            if ('id' in message && asked.delete(message.id)) controller.enqueue(answerIn(message))
            return
          }
          const unreadable = wrongIn(message)
          if (unreadable) onUnreadable(unreadable)
          if (isAsk(message)) controller.enqueue(askIn(message))
          else if (!unreadable)
            controller.enqueue(isOtherUpdate(message) ? { ...message, method: OTHER_UPDATE } : message)
        },
      }),
    ),
  }
}

/** Leaves an agent unread that goes on to say something and does not read itself. @returns what is told of each piece */
function heldBack(agent: AgentProcess): (bytes: number) => void {
  const { stdin } = agent.child
  let saidDeaf = 0
  return (bytes) => {
    saidDeaf = stdin.writableNeedDrain ? saidDeaf + bytes : 0
    if (saidDeaf < MAX_SAID_DEAF) return
    const hears = deferred()
    const onHears = () => hears.resolve()
    stdin.once('drain', onHears).once('close', onHears)
    void hears.promise.then(() => stdin.off('drain', onHears).off('close', onHears))
    agent.leaveUnread(hears.promise)
  }
}

/**
 * As it is read; unlike Node's own, it does not go on with a pipe that somebody paused.
 * @param input whose failure ends it: from Node 24 on, a write to it may have succeeded by then
 */
function saidBy(output: Readable, input: Writable, onSaid: (bytes: number) => void): ReadableStream<Uint8Array> {
  let leave = () => {}
  return new ReadableStream<Uint8Array>({
    start(controller) {
      const take = (piece: Uint8Array) => {
        controller.enqueue(piece)
        onSaid(piece.length)
      }
      const forgetEnd = finished(output, { writable: false }, (error) =>
        error ? controller.error(error) : controller.close(),
      )
      const onDeaf = (error: Error) => {
        leave()
        controller.error(error)
      }
      leave = () => {
        output.off('data', take)
        input.off('error', onDeaf)
        forgetEnd()
      }
      output.on('data', take)
      input.once('error', onDeaf)
    },
    cancel() {
      // what was read ahead, and an end, may still come
      leave()
      output.destroy()
    },
  })
}
