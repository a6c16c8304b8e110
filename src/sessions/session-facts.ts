import { basename } from 'node:path'
import type { SessionEventOf } from '../../schemas/events.js'
import type { ProfileInfo } from '../../schemas/profiles.js'
import type { SessionInfo, SessionStatus, TokenUsage } from '../../schemas/sessions.js'
import { DEFAULT_AGENT } from '../engines/cli/agent-table.js'
import type { RunnerEvent, SessionRunnerConfig } from '../engines/runner.js'
import { NO_USAGE, usageSince } from '../engines/token-usage.js'
import { cutAt } from '../lib/cut-at.js'
import { copyOf } from '../lib/json-value.js'
import { oneLine } from '../lib/one-line.js'
import type { Choice } from './kept/news.js'

const TITLE_LENGTH = 80
/** Every list, frame and notification has it; `session_error` tells all of it. */
const DETAIL_LENGTH = 1_000

/** What a SessionInfo says of a session beside its facts. */
interface DescribedSession {
  readonly id: string
  readonly profile: { readonly info: ProfileInfo }
  readonly createdAt: number
  readonly pendingPermissions: readonly unknown[]
  readonly clients: { readonly count: number }
  readonly jobId: string | undefined
}

/** What engines count over a session. */
export interface RunningTotals {
  numTurns: number
  cost: number
}

/** What is known about a session from its request and from what its engine reported. */
export class SessionFacts {
  hostTitle: string | undefined
  firstPrompt: string | undefined
  /** What the engine calls the session, of one that gives titles. */
  engineTitle: string | undefined
  sdkSessionId: string | undefined
  model: string | undefined
  permissionMode: string | undefined
  apiKeySource: string | undefined
  statusDetail: string | undefined
  /** What was said in the earlier session that it resumes is told. */
  toldHistory: true | undefined
  numTurns = 0
  cost = 0
  /** What engines came to that nothing was kept of: the one that began anew counts from nothing. */
  before: RunningTotals | undefined
  /** What of `cost` is counted already. */
  #counted = 0
  readonly usage: TokenUsage = nothingUsed()
  /** What the model calls of the turn in progress have told; undefined: nothing. */
  turnUsage: TokenUsage | undefined
  /** Of that, what an engine was lost with: the one that goes on from an earlier snapshot does not know of it. */
  #lostUsage: TokenUsage | undefined
  /** Tokens of a turn that its session ended in the middle of, until they are counted. */
  #lastUsage: TokenUsage | undefined
  lastActivityAt: number
  readonly #cwd: string
  readonly #meta: Record<string, unknown> | undefined

  constructor(config: SessionRunnerConfig, createdAt: number) {
    this.hostTitle = config.title
    this.model = config.model
    this.permissionMode = config.permissionMode
    this.lastActivityAt = createdAt
    this.#cwd = config.cwd
    this.#meta = config.meta
  }

  /** Whether no engine has told of itself yet, in this process or an earlier one. */
  get isNew(): boolean {
    return this.sdkSessionId === undefined
  }

  get title(): string {
    return this.hostTitle ?? this.derivedTitle
  }

  get derivedTitle(): string {
    return derivedTitle({ engineTitle: this.engineTitle, firstPrompt: this.firstPrompt, cwd: this.#cwd })
  }

  onPrompt(text: string): void {
    this.firstPrompt ??= Array.from(text.slice(0, TITLE_LENGTH * 2))
      .slice(0, TITLE_LENGTH)
      .join('')
  }

  onCall(usage: Partial<TokenUsage> | undefined): void {
    if (!usage) return
    this.turnUsage ??= nothingUsed()
    addUsage(this.turnUsage, usage)
  }

  onEngineEvent(payload: unknown): void {
    const { type, title } = (payload ?? {}) as { type?: unknown; title?: unknown }
    if (type === 'title_changed' && typeof title === 'string')
      this.engineTitle = oneLine(title, TITLE_LENGTH) || undefined
  }

  /** What was added to `cost` since this was asked the last time. */
  takeCost(): number {
    const added = this.cost - this.#counted
    this.#counted = this.cost
    return added > 0 ? added : 0
  }

  /** The session ends: nobody tells the end of its turn, and what that has used is used up all the same. */
  endTurn(): void {
    const usage = this.takeTurnUsage()
    if (!usage) return
    addUsage(this.usage, usage)
    this.#lastUsage = usage
  }

  /** What the calls of a turn have told whose end no engine tells. */
  takeTurnUsage(): TokenUsage | undefined {
    const usage = this.turnUsage
    this.turnUsage = undefined
    this.#lostUsage = undefined
    return usage
  }

  /** What a turn had used that its session ended in the middle of, once. */
  takeLastUsage(): TokenUsage | undefined {
    const usage = this.#lastUsage
    this.#lastUsage = undefined
    return usage
  }

  /** An engine begins that knows nothing of the session. */
  countFromHere(): void {
    const { numTurns, cost } = this
    this.before = numTurns > 0 || cost > 0 ? { numTurns, cost } : undefined
  }

  /** What a snapshot of now knows to be used in the turn in progress. */
  get usedBySnapshot(): TokenUsage {
    return usageSince(this.turnUsage ?? nothingUsed(), this.#lostUsage ?? nothingUsed())
  }

  /** The end of a turn with the session's totals, as its engine tells it with its own. */
  withTotals(end: SessionEventOf<'turn_completed'>): SessionEventOf<'turn_completed'> {
    const lost = this.#lostUsage
    this.#lostUsage = undefined
    if (lost) addUsage(lost, end.usage)
    const whole = lost ? { ...end, usage: lost } : end
    const { before } = this
    if (!before) return whole
    const [numTurns, cost] = [countOf(end.numTurns) ?? 0, countOf(end.totalCostUsd) ?? 0]
    return { ...whole, numTurns: before.numTurns + numTurns, totalCostUsd: before.cost + cost }
  }

  /** What is written down beside the SessionInfo; what is empty is left out. */
  get kept() {
    const { hostTitle, firstPrompt, engineTitle, toldHistory, before, turnUsage } = this
    return {
      ...(hostTitle !== undefined && { hostTitle }),
      ...(firstPrompt !== undefined && { firstPrompt }),
      ...(engineTitle !== undefined && { engineTitle }),
      ...(toldHistory && { toldHistory }),
      ...(before && { before }),
      // a copy: it is written down later
      ...(turnUsage && { turnUsage: { ...turnUsage } }),
    }
  }

  /**
   * Takes up what was known when the session was written down.
   * @param used in the turn in progress, as the snapshot knows that it goes on from
   */
  restore(
    info: SessionInfo,
    kept: Pick<SessionFacts, 'firstPrompt' | 'engineTitle' | 'toldHistory' | 'before' | 'turnUsage'>,
    used: TokenUsage | undefined,
  ): void {
    const { firstPrompt, engineTitle, toldHistory, before, turnUsage } = kept
    this.firstPrompt = firstPrompt
    this.engineTitle = engineTitle
    this.toldHistory = toldHistory
    this.before = before
    this.turnUsage = turnUsage && { ...turnUsage }
    this.#lostUsage = turnUsage && used && usageSince(turnUsage, used)
    this.sdkSessionId = info.sdkSessionId
    this.model = info.model
    this.permissionMode = info.permissionMode
    this.apiKeySource = info.apiKeySource
    this.statusDetail = info.statusDetail
    this.numTurns = info.numTurns
    this.cost = info.cost
    this.#counted = info.cost
    this.lastActivityAt = info.lastActivityAt
    Object.assign(this.usage, info.usage)
  }

  info(
    { id, profile, createdAt, pendingPermissions, clients, jobId }: DescribedSession,
    status: SessionStatus,
    lastSeq: number,
    parked: SessionInfo['parked'],
  ): SessionInfo {
    const { name, engine, agent = DEFAULT_AGENT } = profile.info
    const info: SessionInfo = {
      id,
      status,
      profile: name,
      engine,
      title: this.title,
      cwd: this.#cwd,
      createdAt,
      lastActivityAt: this.lastActivityAt,
      lastSeq,
      pendingPermissions: pendingPermissions.length,
      attachedClients: clients.count,
      numTurns: this.numTurns,
      cost: this.cost,
      usage: { ...this.usage },
    }
    if (this.sdkSessionId !== undefined) info.sdkSessionId = this.sdkSessionId
    if (this.statusDetail !== undefined) info.statusDetail = cutAt(this.statusDetail, DETAIL_LENGTH)
    if (engine === 'cli') info.agent = agent
    if (this.model !== undefined) info.model = this.model
    if (this.permissionMode !== undefined) info.permissionMode = this.permissionMode
    if (this.apiKeySource !== undefined) info.apiKeySource = this.apiKeySource
    if (jobId !== undefined) info.jobId = jobId
    // a host may write into what it is given
    if (parked !== undefined) info.parked = copyOf(parked)
    if (this.#meta !== undefined) info.meta = copyOf(this.#meta)
    return info
  }
}

/** The engine's own, else the first prompt's beginning, else the last segment of `cwd`. */
export const derivedTitle = ({
  engineTitle,
  firstPrompt,
  cwd,
}: {
  engineTitle?: string | undefined
  firstPrompt?: string | undefined
  cwd: string
}): string => engineTitle ?? firstPrompt ?? (basename(cwd) || cwd)

/** What an engine says may be of any type, and a SessionInfo that cannot be serialised would spoil every list it is in. */
export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)
/** Some engines say -1 of what they do not know: it would be taken off what was used before. */
export const countOf = (value: unknown): number | undefined =>
  Number.isFinite(value) && (value as number) >= 0 ? (value as number) : undefined

/** Takes in what an event says. */
export function applyRunnerEvent(facts: SessionFacts, event: RunnerEvent): void {
  switch (event.type) {
    case 'system_init':
      facts.sdkSessionId = textOf(event.sdkSessionId)
      facts.model = textOf(event.model)
      facts.apiKeySource = textOf(event.apiKeySource)
      facts.permissionMode = textOf(event.permissionMode)
      return
    case 'model_changed':
      facts.model = textOf(event.model)
      return
    case 'permission_mode_changed':
      facts.permissionMode = textOf(event.mode)
      return
    case 'user_message':
      if (event.replay) facts.toldHistory = true
      return
    case 'assistant_message':
      if (event.replay) facts.toldHistory = true
      else facts.onCall(event.message?.usage)
      return
    case 'turn_completed':
      facts.turnUsage = undefined
      // turns and cost are running totals, tokens are this turn's
      facts.numTurns = countOf(event.numTurns) ?? facts.numTurns
      facts.cost = countOf(event.totalCostUsd) ?? facts.cost
      addUsage(facts.usage, event.usage)
      return
    case 'session_error':
      facts.statusDetail = textOf(event.message)
      return
    case 'engine_event':
      facts.onEngineEvent(event.payload)
      return
  }
}

export const nothingUsed = (): TokenUsage => ({ ...NO_USAGE })

export function addUsage(total: TokenUsage, turn: Partial<TokenUsage> | undefined): void {
  total.inputTokens += countOf(turn?.inputTokens) ?? 0
  total.outputTokens += countOf(turn?.outputTokens) ?? 0
  total.cacheCreationTokens += countOf(turn?.cacheCreationTokens) ?? 0
  total.cacheReadTokens += countOf(turn?.cacheReadTokens) ?? 0
}

/**
 * The end of a turn that no engine could tell; what its calls have told is used up all the same.
 * @param isError whether it was cut off; not when somebody wanted it to end
 */
export function endInterrupted(
  facts: SessionFacts,
  reason: string,
  isError: boolean,
): SessionEventOf<'turn_completed'> {
  const { numTurns, cost } = facts
  const usage = facts.takeTurnUsage() ?? nothingUsed()
  addUsage(facts.usage, usage)
  const end = { type: 'turn_completed', subtype: 'interrupted', isError, durationMs: 0 } as const
  return { ...end, numTurns, totalCostUsd: cost, errors: [reason], usage }
}

/** What only the host sets is never written down; the title is the one that the session has by now. */
export function keptConfig(request: SessionRunnerConfig, hostTitle: string | undefined): SessionRunnerConfig {
  const { env: _env, defaultApprovalTimeoutMs: _timeout, agentOptions: _options, title: _title, ...kept } = request
  return hostTitle === undefined ? kept : { ...kept, title: hostTitle }
}

/** The request, with what was chosen since. */
export function withChoice({ request, chosen }: { request: SessionRunnerConfig; chosen: Choice | undefined }) {
  if (!chosen) return request
  const { model: asked, ...rest } = request
  const model = chosen.model === undefined ? asked : (chosen.model ?? undefined)
  const permissionMode = chosen.permissionMode ?? request.permissionMode
  return { ...rest, ...(model !== undefined && { model }), ...(permissionMode !== undefined && { permissionMode }) }
}
