import pc from 'picocolors'
import type { AttachItem, Attachment, PermissionRequest, Session, SessionStatus } from '../../client/index.js'
import { Asks } from './asks.js'
import { Away } from './away.js'
import { CommandFailure, EXIT } from './exit.js'
import { isInteractive, Keys } from './keys.js'
import { count, note, safe } from './output.js'
import { SessionView, textOf, type ViewOptions } from './session-view.js'
import { PASTE_MS } from './words.js'

const NOBODY_THERE = 'Nobody is at a terminal to be asked.'

/** Bytes of a line that a terminal takes; it drops what is behind them, and does not say so. */
const MOST_OF_A_LINE = 4095

export interface ConversationOptions extends ViewOptions {
  json?: boolean
  afterSeq?: number
  /** Leave with the first turn that ends. */
  untilTurn?: boolean
  /** What becomes of an approval when nobody is at a terminal. */
  unattended: 'deny' | 'leave'
  /** Whether lines that are typed are sent. */
  takesLines?: boolean
}

export interface Outcome {
  exitCode: number
  lastText: string
  /** Nothing more comes of the session. */
  isClosed: boolean
}

/** Follows a session on this terminal: shows it, asks what it asks, interrupts it, and leaves. */
export class Conversation {
  readonly #session: Session
  readonly #options: ConversationOptions
  readonly #view: SessionView
  readonly #attachment: Attachment
  readonly #asks: Asks | undefined
  readonly #away: Away
  #lastText = ''
  /** Asked, and neither answered nor put to anybody here. */
  #pending = new Map<string, PermissionRequest>()
  /** As it was told last; undefined as long as nothing has told of it. */
  #status: SessionStatus | undefined
  #interrupts = 0
  #isDenied = false
  #isClosed = false
  #failure: CommandFailure | undefined
  #exitCode: number = EXIT.success

  constructor(session: Session, options: ConversationOptions) {
    this.#session = session
    this.#options = options
    this.#view = new SessionView(options)
    this.#attachment = session.attach({ afterSeq: options.afterSeq })
    this.#away = new Away({
      goesOn: `The session goes on without you: session-gateway sessions attach ${session.id}`,
      leave: (failure) => this.#leave(failure),
      breakLine: () => this.#view.breakLine(),
    })
    const onEnd = () => {
      // what waits stays for others
      if (options.takesLines) this.#attachment.close()
    }
    if (isInteractive() && !options.json) this.#asks = new Asks(session, new Keys(() => this.#interrupt(), onEnd))
  }

  async run(): Promise<Outcome> {
    const onSignal = () => this.#interrupt()
    process.on('SIGINT', onSignal)
    this.#attachment.onConnection((connection) => {
      // once what has come was read
      if (connection.state === 'reconnecting') setTimeout(() => this.#onLost())
      else this.#away.onConnection(connection)
      if (connection.state === 'live' && connection.isSynced) setTimeout(() => this.#askPending())
    })
    const stopReading = this.#options.takesLines ? this.#readLines() : () => {}
    try {
      let isDone = false
      for await (const batch of this.#attachment.batches()) {
        isDone = batch.some((item) => this.#show(item))
        if (isDone) break
        this.#askPending()
      }
      if (this.#failure) throw this.#failure
      // somebody else has closed it
      if (this.#options.untilTurn && !isDone) this.#exitCode = EXIT.failed
      return { exitCode: this.#exitCode, lastText: this.#lastText, isClosed: this.#isClosed }
    } finally {
      this.#view.breakLine()
      stopReading()
      this.#asks?.clear()
      process.off('SIGINT', onSignal)
    }
  }

  /** @returns whether that was all that was waited for */
  #show(item: AttachItem): boolean {
    if (this.#options.json) process.stdout.write(`${JSON.stringify(item)}\n`)
    else this.#view.show(item)
    return this.#take(item)
  }

  #take(item: AttachItem): boolean {
    switch (item.type) {
      case 'gap':
        this.#pending = new Map(item.snapshot.pendingPermissions.map((request) => [request.id, request]))
        this.#asks?.keepOnly(this.#pending)
        this.#status = item.snapshot.session.status
        return false
      case 'status_changed':
        this.#status = item.status
        return false
      case 'permission_requested':
        this.#pending.set(item.request.id, item.request)
        return false
      case 'permission_resolved':
        this.#pending.delete(item.requestId)
        this.#asks?.settle(item.requestId)
        if (item.behavior === 'deny') this.#isDenied = true
        return false
      case 'assistant_message':
        if (item.parentToolUseId === null) this.#lastText = textOf(item.message.content) ?? this.#lastText
        return false
      case 'session_error':
        this.#exitCode = EXIT.failed
        return false
      case 'session_closed':
        this.#isClosed = true
        return false
      case 'turn_completed':
        this.#asks?.clear()
        this.#interrupts = 0
        this.#exitCode =
          item.subtype === 'interrupted'
            ? EXIT.interrupted
            : item.isError
              ? EXIT.failed
              : this.#isDenied
                ? EXIT.denied
                : EXIT.success
        this.#isDenied = false
        return this.#options.untilTurn === true
      default:
        return false
    }
  }

  /** What is replayed may be answered already: only what waits once everything has come is asked. */
  #askPending(): void {
    const { connection } = this.#attachment
    if (connection.state !== 'live' || !connection.isSynced) return
    for (const request of this.#pending.values()) {
      this.#view.breakLine()
      if (this.#asks) this.#asks.add(request)
      else if (this.#options.unattended === 'leave')
        note(
          pc.yellow(
            `? ${safe(request.toolName)} waits for an approval: session-gateway approvals allow ${safe(request.id)}`,
          ),
        )
      // somebody else may have answered
      else this.#session.answer(request.id, { behavior: 'deny', message: NOBODY_THERE }).catch(() => {})
    }
    this.#pending.clear()
  }

  /** The first one ends the turn, the second one leaves; where nobody types and no turn is waited for, the first one does. */
  #interrupt(): void {
    this.#view.breakLine()
    if (++this.#interrupts > 1 || this.#isIdle) {
      this.#leave(new CommandFailure('Left. The session is still there.', EXIT.interrupted))
      return
    }
    note(pc.dim('Interrupting. Press Ctrl-C again to leave.'))
    this.#asks?.clear()
    this.#session.interrupt().catch(() => {})
  }

  get #isIdle(): boolean {
    const { connection, snapshot } = this.#attachment
    const { takesLines, untilTurn } = this.#options
    if (takesLines || untilTurn || connection.state !== 'live' || !connection.isSynced) return false
    return (this.#status ?? snapshot?.session.status) === 'idle'
  }

  #onLost(): void {
    const { connection } = this.#attachment
    if (connection.state !== 'reconnecting') return
    // without a socket it takes another connection to be told that nothing more comes
    if (this.#isClosed) this.#attachment.close()
    else this.#away.onConnection(connection)
  }

  #leave(failure: CommandFailure): void {
    this.#failure = failure
    this.#attachment.close()
  }

  /** Sends each line that is typed, and what is pasted as one; but not while a question has the keyboard. */
  #readLines(): () => void {
    let rest = ''
    let whole: NodeJS.Timeout | undefined
    const lines: string[] = []
    const say = () => {
      const said = lines.splice(0)
      const text = said.join('\n').trim()
      if (!text) return
      if (said.some((line) => Buffer.byteLength(line) >= MOST_OF_A_LINE)) {
        this.#view.breakLine()
        note(pc.red(`Not sent: the terminal has cut a line at ${count(MOST_OF_A_LINE)} bytes.`))
        note(`Send it from a file: session-gateway sessions send ${this.#session.id.slice(0, 8)} - < FILE`)
        return
      }
      // what was to be interrupted is over for whoever goes on to talk
      this.#interrupts = 0
      this.#session.send(text).catch((error) => {
        this.#view.breakLine()
        note(pc.red(safe(error.message)))
      })
    }
    const onData = (data: Buffer) => {
      const typed = (rest + data.toString()).split('\n')
      rest = typed.pop() ?? ''
      lines.push(...typed)
      clearTimeout(whole)
      whole = setTimeout(say, PASTE_MS)
    }
    const onEnd = () => {
      say()
      const unsent = rest.trim()
      if (unsent) {
        this.#view.breakLine()
        // it stands in the line that the cursor is in
        if (process.stdin.isTTY) note('')
        note(pc.red(`Not sent, as no Enter came behind it: ${safe(unsent)}`))
      }
      this.#attachment.close()
    }
    const listen = () => {
      process.stdin.on('data', onData)
      process.stdin.resume()
    }
    const ignore = () => {
      process.stdin.off('data', onData)
      process.stdin.pause()
    }
    process.stdin.on('end', onEnd)
    if (this.#asks) this.#asks.onBusy = (isBusy) => (isBusy ? ignore() : listen())
    listen()
    return () => {
      clearTimeout(whole)
      process.stdin.off('end', onEnd)
      // a question that is let go of gives the keyboard back to nobody
      if (this.#asks) this.#asks.onBusy = () => {}
      ignore()
    }
  }
}
