/** How many deliveries may be under way at once: each takes a connection. */
export interface ConnectionLimits {
  /** To one receiver (scheme, host and port). Default 8. */
  perTarget?: number | undefined
  /** To all. Default 64. */
  total?: number | undefined
}

/** Who named a target. Operators name few; callers may name as many as they like. */
export type NamedBy = 'operator' | 'caller'

interface Target {
  underWay: number
  waiting: ((taken: boolean) => void)[]
  /** Rises: the one that was served longest ago has the smallest. */
  turn: number
}

/** Leaves a quarter free. */
const partOf = (slots: number) => Math.max(1, Math.floor((slots * 3) / 4))

/** The right to connect: targets are served in turn, however many deliveries wait for each. */
export class Slots {
  readonly #perTarget: number
  readonly #total: number
  /** Those with something under way or waiting, by their turns: apart, as those that callers name may be very many that all have to wait. */
  readonly #targets: Record<NamedBy, Map<string, Target>> = { operator: new Map(), caller: new Map() }
  readonly #underWay: Record<NamedBy, number> = { operator: 0, caller: 0 }
  #turn = 0
  #closed = false

  constructor({ perTarget = 8, total = 64 }: ConnectionLimits = {}) {
    this.#perTarget = perTarget
    this.#total = total
  }

  /** Resolves when the target may be connected to, to be followed by `give`; false when it will not be any more. */
  take(name: string, namedBy: NamedBy): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false)
    const targets = this.#targets[namedBy]
    const target = targets.get(name) ?? { underWay: 0, waiting: [], turn: ++this.#turn }
    targets.set(name, target)
    return new Promise((resolve) => {
      target.waiting.push(resolve)
      this.#serve()
    })
  }

  give(name: string, namedBy: NamedBy): void {
    const target = this.#targets[namedBy].get(name)
    if (!target) return
    target.underWay--
    this.#underWay[namedBy]--
    if (target.underWay === 0 && target.waiting.length === 0) this.#targets[namedBy].delete(name)
    this.#serve()
  }

  /** Whoever waits, and comes from now on, is told that nothing is connected to any more. */
  close(): void {
    this.#closed = true
    for (const targets of Object.values(this.#targets))
      for (const { waiting } of targets.values()) for (const resolve of waiting.splice(0)) resolve(false)
  }

  get #allUnderWay(): number {
    return this.#underWay.operator + this.#underWay.caller
  }

  #serve(): void {
    while (this.#allUnderWay < this.#total) {
      const [next, other] = [this.#next('operator'), this.#next('caller')]
      const first = next && other ? (next.target.turn < other.target.turn ? next : other) : (next ?? other)
      if (!first) return
      const { name, namedBy, target } = first
      target.underWay++
      target.turn = ++this.#turn
      this.#underWay[namedBy]++
      // to the end of the row
      this.#targets[namedBy].delete(name)
      this.#targets[namedBy].set(name, target)
      target.waiting.shift()!(true)
    }
  }

  /** The first that waits and may be served now. */
  #next(namedBy: NamedBy): { name: string; namedBy: NamedBy; target: Target } | undefined {
    if (namedBy === 'caller' && this.#underWay.caller >= this.#ofCallers) return undefined
    for (const [name, target] of this.#targets[namedBy])
      if (target.waiting.length > 0 && this.#mayServe(name, target, namedBy)) return { name, namedBy, target }
    return undefined
  }

  get #ofCallers(): number {
    return partOf(this.#total)
  }

  /**
   * Targets with something under way leave a part to those with nothing, so that one which answers is served beside many that do not.
   * What callers named leaves a part to the operator: with hosts enough, each with nothing under way, it would take all.
   */
  #mayServe(name: string, { underWay }: Target, namedBy: NamedBy): boolean {
    if (underWay + this.#underWayOfTwin(name, namedBy) >= this.#perTarget) return false
    const callers = this.#ofCallers
    if (underWay === 0) return true
    if (namedBy === 'operator')
      return this.#allUnderWay < callers || this.#underWay.operator < partOf(this.#total - callers)
    return this.#underWay.caller < partOf(callers) && this.#allUnderWay < callers
  }

  /** To the same receiver, named by the other. */
  #underWayOfTwin(name: string, namedBy: NamedBy): number {
    return this.#targets[namedBy === 'operator' ? 'caller' : 'operator'].get(name)?.underWay ?? 0
  }
}
