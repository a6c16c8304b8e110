import { X509Certificate } from 'node:crypto'
import { checkServerIdentity } from 'node:tls'
import { type Clock, systemClock } from '../lib/clock.js'
import { tried } from '../lib/tried.js'
import { DAY_MS } from '../lib/utc-day.js'
import type { ConfigProblem } from './config-problem.js'
import type { EffectiveConfig } from './load-config.js'

/** So long before its end a certificate is told of. */
const NOTICE_MS = 14 * DAY_MS

/** Certificates that nodes do not take from each other, or soon will not. What is served to clients does not depend on them. */
export function certificateWarnings({ cluster }: EffectiveConfig, now = Date.now()): ConfigProblem[] {
  if (!cluster?.tls) return []
  const [own, ...between] = certificatesIn(cluster.tls.cert)
  const cas = certificatesIn(cluster.tls.ca)
  // what is no certificate is refused
  if (!own || cas.length === 0) return []
  const aged = warnings('cluster.tls.cert', own, 'give this node a new one and start it anew', now)
  return [
    ...(aged.length > 0 ? aged : strangeness(own, between, cas, cluster.url)),
    ...warnings('cluster.tls.ca', cas[0]!, 'all nodes need certificates of a new one', now),
  ]
}

/** Tells of them once a day from tomorrow on: a node may run for longer than a certificate is told of. */
export function watchCertificates(
  config: EffectiveConfig,
  tell: (warning: ConfigProblem) => void,
  clock: Clock = systemClock,
): void {
  if (!config.cluster?.tls) return
  clock.after(DAY_MS, () => {
    for (const warning of certificateWarnings(config, clock.now())) tell(warning)
    watchCertificates(config, tell, clock)
  })
}

const CERTIFICATE = /-----BEGIN (?:TRUSTED |X509 )?CERTIFICATE-----[^-]+-----END (?:TRUSTED |X509 )?CERTIFICATE-----/g

const certificatesIn = (pem: string): X509Certificate[] =>
  (pem.match(CERTIFICATE) ?? []).flatMap((one) => tried(() => new X509Certificate(one)) ?? [])

/** Why other nodes take this one for somebody else. */
function strangeness(
  own: X509Certificate,
  between: readonly X509Certificate[],
  cas: readonly X509Certificate[],
  url: string,
): ConfigProblem[] {
  const path = 'cluster.tls.cert'
  if (!isSigned(own, between, cas)) {
    const message =
      'it is not signed by cluster.tls.ca, and no node takes it; give this node one that is, with what is between the two behind it'
    return [{ path, message }]
  }
  const host = URL.canParse(url) ? new URL(url).hostname.replace(/^\[(.*)\]$/, '$1') : ''
  if (host === '' || !checkServerIdentity(host, own.toLegacyObject())) return []
  return [
    {
      path,
      message: `it is not for ${host}, the host of cluster.url, and no node asks this one; give it one that names that host`,
    },
  ]
}

/** By one of the authorities, or by one of those between that is. */
function isSigned(one: X509Certificate, between: readonly X509Certificate[], cas: readonly X509Certificate[]): boolean {
  const signs = (signer: X509Certificate) => one.checkIssued(signer) && one.verify(signer.publicKey)
  if (cas.some((ca) => ca.fingerprint256 === one.fingerprint256 || signs(ca))) return true
  return between.some(
    (signer) =>
      signs(signer) &&
      isSigned(
        signer,
        between.filter((other) => other !== signer),
        cas,
      ),
  )
}

function warnings(path: string, certificate: X509Certificate, remedy: string, now: number): ConfigProblem[] {
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
