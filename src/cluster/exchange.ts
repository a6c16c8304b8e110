import { toError } from '../errors.js'
import type { Clock } from '../lib/clock.js'
import type { Logger } from '../lib/logger.js'
import { tried } from '../lib/tried.js'
import { within } from '../lib/within.js'
import type { WaitingCounts } from '../notifications/inbox.js'
import type { ClusterNode } from '../storage/cluster.js'
import type { Cluster, NodeRequest } from './cluster.js'

/** Who can be asked, and how. */
export interface Peers extends Pick<Cluster, 'others'> {
  /** Rejects when the node cannot be reached. */
  ask(node: ClusterNode, request: NodeRequest & { body?: string }): Promise<Response>
}

/** What a node holds in memory that another one may have changed. */
const CHANGES = ['notifications', 'signIns', 'subscriptions', 'inbox'] as const
export type Change = (typeof CHANGES)[number]

/** What one node tells another. */
export interface ChangesTold {
  /** Whose inbox `waiting` is. */
  from: number
  changed: readonly Change[]
  /** How many permissions and questions wait there, by profile. */
  waiting?: WaitingCounts
}

export interface ExchangeParts {
  peers: Peers
  /** This node's. */
  n(): number
  /** What waits here. */
  waiting(): WaitingCounts
  /** What stands before the routes, as in `/v1`. */
  basePath: string
  clock: Clock
  logger: Logger
}

/** Of the routes for nodes alone, under the base path. */
export const EXCHANGE_PATH = '/cluster/v1'

/** A node that says nothing for so long is left out. */
const PATIENCE_MS = 2_000
/** Before a node that did not hear it is told again. */
const AGAIN_MS = 1_000
/** One that did not answer so often in a row is an operator's to look at. */
const SILENT_TIMES = 3

/** One node as this one tells it of changes: what came while it was told goes together with the next. */
interface Line {
  pending: Set<Change>
  telling: Promise<void> | undefined
  /** How often in a row it was not there. */
  silent: number
}

/** It is there, and does not take it now. */
class Refused extends Error {}

/** Codes of a gateway that is not the node which is asked: another one, or its port for clients. */
const MISTAKEN: ReadonlySet<string> = new Set(['SG_ERR_WRONG_NODE', 'SG_ERR_HOP_REFUSED'])

/** Why an answer is none; whatever listens at an address answers something. */
function refusalIn(status: number, text: string): Error {
  const code: unknown = tried(() => JSON.parse(text))?.code
  if (typeof code !== 'string' || !code.startsWith('SG_ERR_'))
    return new Error(`what answers there (${status}) is no node`)
  return MISTAKEN.has(code)
    ? new Error(`what answers there (${status} ${code}) is another node, or where clients ask`)
    : new Refused(`it answered ${status} ${code}`)
}

/** What nodes tell and ask each other beside the requests that they pass on. */
export class Exchange {
  readonly #parts: ExchangeParts
  readonly #lines = new Map<number, Line>()
  readonly #listeners = new Map<Change, (told: ChangesTold) => unknown>()
  #closed = false

  constructor(parts: ExchangeParts) {
    this.#parts = parts
  }

  close(): void {
    this.#closed = true
  }

  /** @param listener one for each; resolves when it has looked */
  on(change: Change, listener: (told: ChangesTold) => unknown): void {
    this.#listeners.set(change, listener)
  }

  /** Tells every other node, and resolves when each of them has looked, or did not hear it. Never rejects. */
  async tell(change: Change): Promise<void> {
    if (this.#closed) return
    await Promise.all(this.#parts.peers.others().map((node) => this.#tellOne(node, change)))
  }

  /** Another node has told something. */
  async told(told: ChangesTold): Promise<void> {
    await Promise.all(told.changed.map(async (change) => this.#listeners.get(change)?.(told)))
  }

  /** Asks every other node. @returns what those gave that answered in time, by their numbers */
  async askAll<Answer>(path: string, question: unknown): Promise<Map<number, Answer>> {
    const answers = new Map<number, Answer>()
    const ask = async (node: ClusterNode) => {
      answers.set(node.n, await this.askOne<Answer>(node, path, question))
    }
    await Promise.all(this.#parts.peers.others().map((node) => ask(node).catch((error) => this.#onSilent(node, error))))
    return answers
  }

  /** Asks one node. @throws when it does not answer in time */
  async askOne<Answer>(node: ClusterNode, path: string, question: unknown): Promise<Answer> {
    return JSON.parse(await this.#post(node, path, question)) as Answer
  }

  async #tellOne(node: ClusterNode, change: Change): Promise<void> {
    const line = this.#lines.get(node.n) ?? { pending: new Set(), telling: undefined, silent: 0 }
    this.#lines.set(node.n, line)
    line.pending.add(change)
    // what is under way was read before
    await line.telling
    line.telling ??= this.#send(node, line).finally(() => {
      line.telling = undefined
    })
    await line.telling
  }

  async #send(node: ClusterNode, line: Line): Promise<void> {
    const changed = [...line.pending]
    line.pending.clear()
    if (changed.length === 0) return
    const { n, waiting } = this.#parts
    const told: ChangesTold = { from: n(), changed, ...(changed.includes('inbox') && { waiting: waiting() }) }
    try {
      await this.#post(node, '/changes', told)
      line.silent = 0
    } catch (error) {
      this.#onSilent(node, error)
      line.silent = error instanceof Refused ? 0 : line.silent + 1
      if (line.silent === SILENT_TIMES) this.#onAway(node, error)
      this.#again(node, changed)
    }
  }

  #again(node: ClusterNode, changed: readonly Change[]): void {
    this.#parts.clock.after(AGAIN_MS, () => {
      const isThere = !this.#closed && this.#parts.peers.others().some(({ n }) => n === node.n)
      if (!isThere) this.#lines.delete(node.n)
      else for (const change of changed) void this.#tellOne(node, change)
    })
  }

  /** @returns what it says, whole */
  #post(node: ClusterNode, path: string, body: unknown): Promise<string> {
    const { clock, peers, basePath } = this.#parts
    const late = new AbortController()
    const asked = async () => {
      const response = await peers.ask(node, {
        method: 'POST',
        path: `${basePath}${EXCHANGE_PATH}${path}`,
        body: JSON.stringify(body),
        signal: late.signal,
        headers: { 'content-type': 'application/json' },
      })
      const text = await response.text()
      const isAnswer = response.ok && response.headers.get('content-type')?.startsWith('application/json')
      if (!isAnswer) throw refusalIn(response.status, text)
      return text
    }
    const onLate = (): never => {
      const error = new Error(`no answer in ${PATIENCE_MS} ms`)
      late.abort(error)
      throw error
    }
    return within(PATIENCE_MS, asked(), { clock, onLate })
  }

  /** Else the first request that is passed on would tell of it. */
  #onAway({ n, name, url }: ClusterNode, error: unknown): void {
    if (this.#closed || !this.#parts.peers.others().some((other) => other.n === n)) return
    this.#parts.logger.warn(
      { err: toError(error), node: name, url },
      'another node cannot be reached, and what it has cannot be had here: look at its cluster.url, its cluster.listen and what is between the two',
    )
  }

  #onSilent(node: ClusterNode, error: unknown): void {
    if (this.#closed) return
    this.#parts.logger.debug?.({ err: toError(error), node: node.name }, 'another node did not answer; it was left out')
  }
}
