import { type ReadonlySignal, signal } from '@preact/signals'
import {
  type Answer,
  GatewayError,
  type InboxAnswerResult,
  type InboxItem,
  UNREACHABLE,
} from '../../../../client/index.js'
import { client } from '../../api.js'
import {
  type Behavior,
  chunksOf,
  type Entry,
  type Fate,
  isSettled,
  isUnsettled,
  isWaiting,
  keyOf,
  keyOfItem,
  merged,
  nextWaiting,
  type Settled,
  stepped,
  withFate,
} from '../../model/inbox.js'
import { newId } from '../../model/new-id.js'
import { gatewayNow } from '../../state/clock.js'
import { forgetDraft } from '../../state/drafts.js'
import { feedBack, feedLink, waiting } from '../../state/feed.js'
import { isUnauthorized, signedIn } from '../../state/me.js'
import { Rereading } from '../../state/reread.js'

export type Kind = 'all' | 'permission' | 'question'

/** As many are shown at once; what waits beyond that comes when some were answered. */
const MAX_SHOWN = 500
/** As many the gateway takes in one request. */
const MAX_ANSWERS = 100
/** As many pages of a log are looked through for who answered. */
const MAX_PAGES = 5
const MAX_LOOKING = 4
/** When a log is read again that does not tell it yet: an answer that wakes a session is told of once its agent is there. */
const LOOK_AGAIN_MS = [1_000, 3_000, 10_000, 30_000]
/** When a list is read again that a node which does not answer was left out of. */
const LEFT_OUT_MS = 3000
const GONE = 'SG_ERR_PERMISSION_NOT_FOUND'

/** What waits, what became of it, and which of it is at hand. */
export class InboxState {
  readonly #entries = signal<readonly Entry[]>([])
  /** When it was read last, epoch milliseconds of the gateway; undefined before. */
  readonly readAt = signal<number | undefined>(undefined)
  readonly error = signal<unknown>(undefined)
  /** Whether more wait than are shown. */
  readonly isCut = signal(false)
  /** Whether some wait at a node that does not answer. */
  readonly isLeftOut = signal(false)
  readonly kind = signal<Kind>('all')
  /** The one that is open, which the keys are for. */
  readonly current = signal<string | undefined>(undefined)
  /** The one that an answer has led to, where nobody has gone themselves. */
  #ledTo: string | undefined
  readonly chosen = signal<ReadonlySet<string>>(new Set())
  readonly #rereading = new Rereading(() => this.#read())
  #next: ReturnType<typeof setTimeout> | undefined
  readonly #looking = new Set<string>()
  /** What is looked for again later, and how often it was. */
  readonly #lookingLater = new Map<string, { looks: number; timer?: ReturnType<typeof setTimeout> }>()
  /** Nobody looks at it any more: what is on its way leads to nothing further. */
  #isLeft = false
  /** What was settled while the list is on its way, which may be older. */
  readonly #meanwhile = new Set<string>()
  /** The same answer that is sent again has the same key, as the first may have been taken. */
  readonly #keys = new Map<string, string>()

  get entries(): ReadonlySignal<readonly Entry[]> {
    return this.#entries
  }

  /** Keeps it as it is at the gateway. @returns a function that ends it */
  follow = (): (() => void) => {
    const unfollow = this.#rereading.follow()
    return () => {
      unfollow()
      this.#isLeft = true
      for (const { timer } of this.#lookingLater.values()) clearTimeout(timer)
    }
  }

  again(): void {
    this.#rereading.again()
  }

  /** What was answered and is not settled stays under any kind: it may fail, and has to be given again. */
  show(kind: Kind): void {
    this.kind.value = kind
    this.#entries.value = this.#entries.value.filter(isUnsettled)
    this.current.value = undefined
    this.chosen.value = new Set()
    this.readAt.value = undefined
    this.again()
  }

  /** Whether nobody has gone to the one that is open: it takes the place of one that was answered. */
  get isLed(): boolean {
    return this.current.value !== undefined && this.current.value === this.#ledTo
  }

  open(key: string | undefined): void {
    this.#ledTo = undefined
    this.current.value = key
  }

  move(by: 1 | -1): void {
    this.open(stepped(this.#entries.value, this.current.value, by))
  }

  choose(keys: readonly string[], isChosen: boolean): void {
    const chosen = new Set(this.chosen.value)
    for (const key of keys) isChosen ? chosen.add(key) : chosen.delete(key)
    this.chosen.value = chosen
  }

  hideAnswered(): void {
    this.#set(this.#entries.value.filter((entry) => !isSettled(entry)))
    if (!this.#find(this.current.value)) this.current.value = undefined
  }

  #find = (key: string | undefined): Entry | undefined => this.#entries.value.find((entry) => entry.key === key)

  /** What is settled is chosen no more. */
  #set(entries: readonly Entry[]): void {
    this.#entries.value = entries
    const waiting = new Set(entries.filter(isWaiting).map(({ key }) => key))
    if ([...this.chosen.value].some((key) => !waiting.has(key)))
      this.chosen.value = new Set([...this.chosen.value].filter((key) => waiting.has(key)))
    this.#lookForAnswers()
  }

  async #read(): Promise<void> {
    const kind = this.kind.value
    const listed: InboxItem[] = []
    this.#meanwhile.clear()
    const filter = kind === 'all' ? {} : { kind }
    const pages = client.inbox.list(filter).pages()[Symbol.asyncIterator]()
    try {
      while (!pages.isAtEnd && listed.length < MAX_SHOWN) listed.push(...((await pages.next()).value ?? []))
    } catch (error) {
      this.error.value = error
      return
    }
    // something else is to be shown by now
    if (kind !== this.kind.value) return
    const isWhole = pages.isAtEnd
    this.error.value = undefined
    this.readAt.value = gatewayNow()
    this.isCut.value = !isWhole
    const items = listed.filter((item) => !this.#meanwhile.has(keyOfItem(item)))
    // what waits at a node that does not answer is counted and not listed: nobody has answered it, and nobody tells when it is back
    const isLeftOut = isWhole && listed.length < countOf(kind)
    this.isLeftOut.value = isLeftOut
    clearTimeout(this.#next)
    if (isLeftOut) this.#next = setTimeout(() => this.again(), LEFT_OUT_MS)
    const isAsked = (item: InboxItem) => !isLeftOut && (kind === 'all' || item.kind === kind)
    // a list that was asked for before the sign-in ended lets nobody in
    const entries = signedIn.value === undefined ? this.#entries.value : this.#entries.value.map(letIn)
    this.#set(merged(entries, items, isWhole, isAsked))
  }

  /** One, and on to the next that waits. */
  async answer(key: string, answer: Answer): Promise<void> {
    const entry = this.#find(key)
    if (!entry || !isWaiting(entry)) return
    const sent = this.#send([entry], answer)
    if (this.current.value === key) this.#ledTo = this.current.value = nextWaiting(this.#entries.value, key)
    await sent
  }

  /** @returns how many of them were taken, and how many not */
  async answerChosen(answer: Answer): Promise<{ taken: number; refused: number }> {
    const entries = this.#entries.value.filter((entry) => this.chosen.value.has(entry.key) && isWaiting(entry))
    const counts = { taken: 0, refused: 0 }
    // at once, however many requests it takes: what is answered does not wait any more
    this.#fate(entries, { state: 'sending', behavior: behaviorOf(answer) })
    for (const chunk of chunksOf(entries, MAX_ANSWERS)) {
      const taken = await this.#send(chunk, answer)
      counts.taken += taken
      counts.refused += chunk.length - taken
    }
    return counts
  }

  /** @returns how many were taken */
  async #send(entries: readonly Entry[], answer: Answer): Promise<number> {
    const behavior = behaviorOf(answer)
    this.#fate(entries, { state: 'sending', behavior })
    const answers = entries.map(({ item }) => ({ sessionId: item.session.id, requestId: item.request.id, answer }))
    const body = JSON.stringify(answers)
    const idempotencyKey = this.#keys.get(body) ?? newId()
    // it may be taken although nobody says so
    this.#keys.set(body, idempotencyKey)
    try {
      const results = await whenThere(() => client.inbox.answer(answers, { idempotencyKey }))
      this.#keys.delete(body)
      let entriesNow: readonly Entry[] = this.#entries.value
      for (const result of results) {
        const key = keyOf(result.sessionId, result.requestId)
        const fate = fateOf(result, behavior)
        if (fate.state !== 'waiting') this.#meanwhile.add(key)
        if (fate.state === 'mine') forgetDraft(result.requestId)
        entriesNow = withFate(entriesNow, key, fate)
      }
      this.#set(entriesNow)
      return results.filter(({ resolved }) => resolved).length
    } catch (error) {
      this.#fate(entries, { state: 'waiting', error })
      this.again()
      return 0
    }
  }

  #fate(entries: readonly Entry[], fate: Fate): void {
    const keys = new Set(entries.map(({ key }) => key))
    this.#set(this.#entries.value.map((entry) => (keys.has(entry.key) ? { ...entry, fate } : entry)))
  }

  /** Of those that somebody else answered, who it was: in the log of their session. */
  #lookForAnswers(): void {
    for (const { key, item, fate } of this.#entries.value) {
      if (this.#looking.size >= MAX_LOOKING) return
      if (fate.state !== 'elsewhere' || fate.how !== undefined || this.#looking.has(key)) continue
      if (this.#lookingLater.get(key)?.timer !== undefined) continue
      this.#looking.add(key)
      void settledHow(item.session.id, item.request.id, item.seq)
        .catch(() => null)
        .then((how) => {
          this.#looking.delete(key)
          if (this.#isLeft) return
          const now = this.#find(key)?.fate
          const isLater = how === undefined && this.#lookLater(key)
          this.#set(
            now?.state === 'elsewhere' && !isLater
              ? withFate(this.#entries.value, key, { state: 'elsewhere', how: how ?? null })
              : this.#entries.value,
          )
        })
    }
  }

  /** @returns whether it was not looked for often enough */
  #lookLater(key: string): boolean {
    const looks = this.#lookingLater.get(key)?.looks ?? 0
    const ms = LOOK_AGAIN_MS[looks]
    if (ms === undefined) return false
    const timer = setTimeout(() => {
      this.#lookingLater.set(key, { looks: looks + 1 })
      this.#lookForAnswers()
    }, ms)
    this.#lookingLater.set(key, { looks: looks + 1, timer })
    return true
  }
}

/** Whoever may read is signed in again: that they were not is no reason any more why an answer was not taken. */
const letIn = (entry: Entry): Entry =>
  entry.fate.state === 'waiting' && isUnauthorized(entry.fate.error) ? { ...entry, fate: { state: 'waiting' } } : entry

/** How many wait, as the feed tells it. */
function countOf(kind: Kind): number {
  const { permissions, questions } = waiting.value
  return (kind === 'question' ? 0 : permissions) + (kind === 'permission' ? 0 : questions)
}

/** Again when the gateway is back, for as long as it is known to be away. */
async function whenThere<T>(send: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await send()
    } catch (error) {
      const isLost = error instanceof GatewayError && error.code === UNREACHABLE
      if (!isLost || feedLink.value.state !== 'away' || !(await feedBack())) throw error
    }
}

const behaviorOf = (answer: Answer): Behavior =>
  typeof answer === 'string' ? answer : 'answers' in answer ? 'allow' : answer.behavior

const fateOf = (result: InboxAnswerResult, behavior: Behavior): Fate => {
  if (result.resolved) return { state: 'mine', behavior }
  const { code, detail } = result
  if (code === GONE || code === 'SG_ERR_SESSION_NOT_FOUND') return { state: 'elsewhere' }
  return { state: 'waiting', error: new GatewayError(detail, { status: 0, code }) }
}

/** Undefined where the log does not tell it yet; null where nobody looks further. */
async function settledHow(sessionId: string, requestId: string, seq: number): Promise<Settled | null | undefined> {
  let count = 0
  for await (const page of client.sessions.events(sessionId, { afterSeq: seq, limit: 200 }).pages()) {
    const found = page.find((event) => event.type === 'permission_resolved' && event.requestId === requestId)
    if (found) return found as Settled
    if (++count === MAX_PAGES) return null
  }
  return undefined
}
