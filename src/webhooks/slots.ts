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
  readonly namedBy: NamedBy
  underWay: number
  waiting: ((taken: boolean) => void)[]
}

/** Leaves a quarter free. */
const partOf = (slots: number) => Math.max(1, Math.floor((slots * 3) / 4))

const keyOf = (name: string, namedBy: NamedBy) => `${namedBy} ${name}`

/** The right to connect: targets are served in turn, however many deliveries wait for each. */
export class Slots {
  readonly #perTarget: number
  readonly #total: number
  /** Those with something under way or waiting, the one that was served longest ago first. */
  readonly #targets = new Map<string, Target>()
  readonly #underWay: Record<NamedBy, number> = { operator: 0, caller: 0 }
  #closed = false

  constructor({ perTarget = 8, total = 64 }: ConnectionLimits = {}) {
    this.#perTarget = perTarget
    this.#total = total
  }

  /** Resolves when the target may be connected to, to be followed by `give`; false when it will not be any more. */
  take(name: string, namedBy: NamedBy): Promise<boolean> {
    if (this.#closed) return Promise.resolve(false)
    const key = keyOf(name, namedBy)
    const target = this.#targets.get(key) ?? { namedBy, underWay: 0, waiting: [] }
    this.#targets.set(key, target)
    return new Promise((resolve) => {
      target.waiting.push(resolve)
      this.#serve()
    })
  }

  give(name: string, namedBy: NamedBy): void {
    const key = keyOf(name, namedBy)
    const target = this.#targets.get(key)
    if (!target) return
    target.underWay--
    this.#underWay[namedBy]--
    if (target.underWay === 0 && target.waiting.length === 0) this.#targets.delete(key)
    this.#serve()
  }

  /** Whoever waits, and comes from now on, is told that nothing is connected to any more. */
  close(): void {
    this.#closed = true
    for (const { waiting } of this.#targets.values()) for (const resolve of waiting.splice(0)) resolve(false)
  }

  get #allUnderWay(): number {
    return this.#underWay.operator + this.#underWay.caller
  }

  #serve(): void {
    for (let served = true; served && this.#allUnderWay < this.#total; ) {
      served = false
      for (const [key, target] of this.#targets) {
        if (target.waiting.length === 0 || !this.#mayServe(key, target)) continue
        target.underWay++
        this.#underWay[target.namedBy]++
        // to the end of the row
        this.#targets.delete(key)
        this.#targets.set(key, target)
        target.waiting.shift()!(true)
        served = true
        break
      }
    }
  }

  /**
   * Targets with something under way leave a part to those with nothing, so that one which answers is served beside many that do not.
   * What callers named leaves a part to the operator: with hosts enough, each with nothing under way, it would take all.
   */
  #mayServe(key: string, { namedBy, underWay }: Target): boolean {
    if (underWay + this.#underWayOfTwin(key, namedBy) >= this.#perTarget) return false
    const callers = partOf(this.#total)
    if (namedBy === 'operator')
      return underWay === 0 || this.#allUnderWay < callers || this.#underWay.operator < partOf(this.#total - callers)
    if (this.#underWay.caller >= callers) return false
    return underWay === 0 || (this.#underWay.caller < partOf(callers) && this.#allUnderWay < callers)
  }

  /** To the same receiver, named by the other. */
  #underWayOfTwin(key: string, namedBy: NamedBy): number {
    const name = key.slice(namedBy.length + 1)
    return this.#targets.get(keyOf(name, namedBy === 'operator' ? 'caller' : 'operator'))?.underWay ?? 0
  }
}
