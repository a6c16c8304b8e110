import { X509Certificate } from 'node:crypto'
import { tried } from '../lib/tried.js'
import type { ConfigProblem } from './config-problem.js'
import type { EffectiveConfig } from './load-config.js'

/** So long before its end a certificate is told of. */
const NOTICE_MS = 14 * 86_400_000

/** Certificates that nodes do not take from each other, or soon will not. What is served to clients does not depend on them. */
export function certificateWarnings({ cluster }: EffectiveConfig, now = Date.now()): ConfigProblem[] {
  const { cert, ca } = cluster?.tls ?? {}
  return [
    ...warnings('cluster.tls.cert', cert, 'give this node a new one and start it anew', now),
    ...warnings('cluster.tls.ca', ca, 'all nodes need certificates of a new one', now),
  ]
}

function warnings(path: string, pem: string | undefined, remedy: string, now: number): ConfigProblem[] {
  // what is no certificate is refused
  const certificate = pem === undefined ? undefined : tried(() => new X509Certificate(pem))
  if (!certificate) return []
  const from = Date.parse(certificate.validFrom)
  const until = Date.parse(certificate.validTo)
  const day = (time: number) => new Date(time).toISOString().slice(0, 10)
  if (from > now)
    return [
      { path, message: `it is valid from ${day(from)} on, and no node takes it before; look at this machine's clock` },
    ]
  if (until <= now) return [{ path, message: `it has expired on ${day(until)}, and no node takes it; ${remedy}` }]
  if (until - now > NOTICE_MS) return []
  return [{ path, message: `it expires on ${day(until)}, and no node takes it after that; ${remedy} before` }]
}
