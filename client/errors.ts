import type { Problem } from './types.js'

/** `code` of an error that no gateway answered: the connection failed, or something in between answered instead. */
export const UNREACHABLE = 'SG_CLIENT_UNREACHABLE'

export interface GatewayErrorFields {
  status: number
  code: string
  errors?: Problem['errors']
  retryAfterMs?: number | undefined
  instance?: string | undefined
  cause?: unknown
}

/** A refusal of the gateway, or the lack of an answer. `message` is its sentence for a person. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError'
  /** HTTP status; 0 when it came over a socket, or when no gateway answered. */
  readonly status: number
  /** Stable machine name, `SG_ERR_…`; match this. `SG_CLIENT_UNREACHABLE` when no gateway answered. */
  readonly code: string
  readonly detail: string
  /** The fields that were wrong. */
  readonly errors: NonNullable<Problem['errors']>
  /** How long to wait before the same may be asked again, milliseconds. */
  readonly retryAfterMs: number | undefined
  /** The request's id in the gateway's log. */
  readonly instance: string | undefined

  constructor(detail: string, { status, code, errors, retryAfterMs, instance, cause }: GatewayErrorFields) {
    super(detail, cause === undefined ? undefined : { cause })
    this.status = status
    this.code = code
    this.detail = detail
    this.errors = errors ?? []
    this.retryAfterMs = retryAfterMs
    this.instance = instance
  }
}

export const unreachable = (detail: string, cause?: unknown, status = 0): GatewayError =>
  new GatewayError(detail, { status, code: UNREACHABLE, cause })

/** An answer of success from a server of something else; with a status of 0 it may have been cut off. */
export const strange = (what: string, status = 200, cause?: unknown): GatewayError =>
  unreachable(`The server answered with ${what}, and not as a gateway does.`, cause, status)

/** What was read of a log is of one that is no more, as when the storage was restored from a backup. */
export const logReplaced = (): GatewayError =>
  new GatewayError('Another log took the place of this one: read it from its beginning.', {
    status: 0,
    code: 'SG_CLIENT_LOG_REPLACED',
  })

const REDIRECTS = [301, 302, 303, 307, 308]
export const isRedirect = (status: number): boolean => REDIRECTS.includes(status)

/** Makes an error of an answer that is none of success. What stands between may answer in JSON, with codes of its own. */
export async function refusalOf(response: Response, now = Date.now()): Promise<GatewayError> {
  // a page is not told the status of a redirect, nor where it leads
  const status = response.type === 'opaqueredirect' ? 302 : response.status
  const retryAfterMs = retryAfter(response, now)
  const problem = (await response.json().catch(() => undefined)) as Partial<Problem> | undefined
  if (!String(problem?.code).startsWith('SG_ERR_'))
    return new GatewayError(
      isRedirect(status)
        ? `The server redirects${targetOf(response)}, as no gateway does: the address of the gateway itself is needed, or a sign-in at what stands between.`
        : `The server answered ${status}, and not as a gateway does.`,
      { status, code: UNREACHABLE, retryAfterMs },
    )
  const { detail, code, errors, instance } = problem as Problem
  return new GatewayError(detail, { status, code, errors, retryAfterMs, instance })
}

/** Without its query: where somebody is sent to sign in, that is long and may be a secret. */
function targetOf({ url, headers }: Response): string {
  const location = headers.get('location')
  try {
    const { origin, pathname } = new URL(location ?? '', url)
    return location ? ` to ${origin}${pathname}` : ''
  } catch {
    return ''
  }
}

/** A time is told by the clock of who says it, where the answer has that. */
function retryAfter({ headers }: Response, now: number): number | undefined {
  const header = headers.get('retry-after') ?? ''
  const toldAt = Date.parse(headers.get('date') ?? '') || now
  const ms = /^\d+$/.test(header) ? +header * 1000 : Date.parse(header) - toldAt
  return ms >= 0 ? ms : undefined
}
