import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** What one node says to another, without its body. */
export interface HopMessage {
  method: string
  /** With its query, as it goes over the wire. */
  path: string
  authorization?: string | undefined
  cookie?: string | undefined
  /** Who asks, as the first node saw it: `CLIENT_HEADER`. */
  client?: string | undefined
}

export interface HopFields {
  /** Incarnations of the nodes. */
  from: number
  to: number
}

export const HOP_HEADER = 'sg-hop'
export const CLIENT_HEADER = 'sg-client'
/** Beside `HOP_HEADER`: the same, signed with the other secret of a node that is given a new one, for those that do not know that yet. */
export const OTHER_HOP_HEADER = 'sg-hop-other'
/** On the answer to what was not let in as a hop, with why: it is for the node that asked, not for its caller. */
export const REFUSED_HEADER = 'sg-hop-refused'

const VERSION = 'v1'
const FORM = /^v1\.(\d{1,16})\.(\d{1,16})\.(\d{1,16})\.([\w-]{22})\.([\w-]{43})$/
const DIGEST = /^[\w-]{43}$/
/** A signature is taken for that long, before and after: clocks differ. */
const VALID_MS = 30_000

/** The value of `HOP_HEADER`. */
export function signHop(secret: string, { from, to }: HopFields, message: HopMessage, now: number): string {
  const signed = `${VERSION}.${from}.${to}.${now}.${randomBytes(16).toString('base64url')}`
  return `${signed}.${digest(secret, signed, message)}`
}

/** The value of `OTHER_HOP_HEADER`. @param hop of `HOP_HEADER`, of the same message */
export const signHopAgain = (secret: string, hop: string, message: HopMessage): string =>
  digest(secret, signedIn(hop), message)

const signedIn = (hop: string): string => hop.slice(0, hop.lastIndexOf('.'))

function digest(secret: string, signed: string, { method, path, authorization, cookie, client }: HopMessage): string {
  const covered = JSON.stringify([signed, method, path, hashed(authorization), hashed(cookie), client ?? null])
  return createHmac('sha256', secret).update(covered).digest('base64url')
}

const hashed = (secret: string | undefined): string | null =>
  secret === undefined ? null : createHash('sha256').update(secret).digest('base64url')

/** Why a hop is not let in. */
export type HopRefusal = 'unsigned' | 'forged' | 'late' | 'replayed' | 'misdirected'

/** Lets in what other nodes have signed, once each. */
export class HopVerifier {
  readonly #secrets: readonly string[]
  readonly #now: () => number
  /** Those of this while, and of the one before: by then none of the older ones is valid. */
  #nonces = new Set<string>()
  #formerNonces = new Set<string>()
  #turnsAt = 0

  constructor(secrets: readonly string[], now: () => number) {
    this.#secrets = secrets
    this.#now = now
  }

  /** @param self incarnation of this node @param other of `OTHER_HOP_HEADER` */
  verify(header: unknown, message: HopMessage, self: number, other?: unknown): HopFields | HopRefusal {
    if (header === undefined) return 'unsigned'
    const match = FORM.exec(String(header))
    if (!match) return 'forged'
    const [text, from, to, at, nonce, signature] = match as unknown as [string, string, string, string, string, string]
    const given = [signature, ...(DIGEST.test(String(other)) ? [String(other)] : [])]
    // each is compared: which one it is takes the same time
    const fits = this.#secrets.flatMap((secret) => {
      const right = Buffer.from(digest(secret, signedIn(text), message))
      return given.map((one) => timingSafeEqual(right, Buffer.from(one)))
    })
    if (!fits.includes(true)) return 'forged'
    const now = this.#now()
    if (Math.abs(now - Number(at)) > VALID_MS) return 'late'
    if (!this.#isNew(nonce, now)) return 'replayed'
    if (Number(to) !== self) return 'misdirected'
    return { from: Number(from), to: Number(to) }
  }

  #isNew(nonce: string, now: number): boolean {
    if (now >= this.#turnsAt) {
      this.#formerNonces = this.#nonces
      this.#nonces = new Set()
      this.#turnsAt = now + 2 * VALID_MS
    }
    if (this.#nonces.has(nonce) || this.#formerNonces.has(nonce)) return false
    this.#nonces.add(nonce)
    return true
  }
}
