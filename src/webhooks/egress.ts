import { lookup } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { Agent, buildConnector, type Dispatcher } from 'undici'
import { GatewayError, optionError, toError } from '../errors.js'

/** Which addresses a URL that the operator did not write may reach. */
export interface EgressPolicy {
  /** Lets loopback, private and carrier-grade NAT addresses in. Default false. */
  allowPrivateNetworks?: boolean | undefined
  /** Exact `host` or `host:port` (IPv6 in brackets) whose private addresses are let in all the same. Default none. */
  allowedHosts?: readonly string[] | undefined
}

/** Every address of a name; rejects when there is none. */
export type ResolveHost = (hostname: string) => Promise<readonly { address: string; family: number }[]>

export interface EgressGuardOptions extends EgressPolicy {
  /** Default: the system's resolver. */
  resolve?: ResolveHost | undefined
  /** Default 10000. */
  connectTimeoutMs?: number | undefined
}

type Verdict = 'public' | 'private' | 'forbidden'

const PRIVATE_RANGES: ReadonlySet<string> = new Set(['loopback', 'private', 'uniqueLocal', 'carrierGradeNat'])

/** Metadata services that live outside the link-local range: Azure, Alibaba Cloud, AWS and Google over IPv6. */
const METADATA_ADDRESSES: ReadonlySet<string> = new Set([
  '168.63.129.16',
  '100.100.100.200',
  'fd00:ec2::254',
  'fd20:ce::254',
])

const NAT64_PREFIX = ipaddr.IPv6.parseCIDR('64:ff9b::/96')
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3')

/** Classes an address; whatever cannot be read is forbidden. */
function judge(address: string): Verdict {
  if (!ipaddr.isValid(address)) return 'forbidden'
  const parsed = ipaddr.process(address)
  if (METADATA_ADDRESSES.has(parsed.toString())) return 'forbidden'
  const range = parsed.range()
  if (PRIVATE_RANGES.has(range)) return 'private'
  if (parsed instanceof ipaddr.IPv6) {
    // A DNS64 network shows every IPv4 host this way: what counts is the address inside.
    if (parsed.match(NAT64_PREFIX)) return judge(parsed.toByteArray().slice(12).join('.'))
    if (!parsed.match(GLOBAL_UNICAST)) return 'forbidden'
  }
  return range === 'unicast' ? 'public' : 'forbidden'
}

const blocked = (host: string, reason: string) =>
  new GatewayError('SG_ERR_EGRESS_BLOCKED', { detail: `${host} may not be reached from here: ${reason}.` })

const NOT_KEPT_HERE =
  'not kept by this runtime, which would connect to addresses that callers and agents may not reach; run it with Node'

const DEFAULT_PORTS: Record<string, string> = { 'http:': '80', 'https:': '443' }

const bareHost = (hostname: string) => hostname.replace(/^\[(.*)\]$/, '$1')

/**
 * Keeps requests to URLs that a caller or an agent chose away from addresses they have no business at. Link-local, cloud-metadata,
 * multicast, unspecified and reserved addresses are refused whatever the policy says, in every spelling; loopback and private ones
 * unless the policy lets them in. The address that was judged is the address that is connected to.
 *
 * Use both halves: `checkUrl` before a request (and before each redirect), `dispatcher` for the request. Environment proxies are not
 * honoured, because behind one the guard would see only the proxy.
 */
export class EgressGuard {
  /** For undici's `request`; refuses at connection time with `SG_ERR_EGRESS_BLOCKED`. */
  readonly dispatcher: Dispatcher
  readonly #allowPrivateNetworks: boolean
  readonly #allowedHosts: ReadonlySet<string>
  readonly #resolve: ResolveHost

  constructor(options: EgressGuardOptions = {}) {
    this.#allowPrivateNetworks = options.allowPrivateNetworks ?? false
    this.#allowedHosts = new Set(options.allowedHosts?.map((host) => host.toLowerCase()))
    this.#resolve = options.resolve ?? ((hostname) => lookup(hostname, { all: true }))

    const timeout = options.connectTimeoutMs ?? 10_000
    const connectors = [false, true].map((trusted) => buildConnector({ timeout, lookup: this.#lookup(trusted) }))
    this.dispatcher = new Agent({
      connect: (target, callback) => {
        const host = bareHost(target.hostname)
        const trusted = this.#trusts(host, target.port || DEFAULT_PORTS[target.protocol]!)
        // A literal never reaches the lookup hook.
        const refusal = isIP(host) ? this.#refusal(host, host, trusted) : undefined
        if (refusal) return callback(refusal, null)
        connectors[trusted ? 1 : 0]!(target, callback)
      },
    })
    // Bun puts names without a function in undici's place, and connects wherever a name leads, without a word.
    if (typeof this.dispatcher.dispatch !== 'function') throw optionError('webhookPolicy', NOT_KEPT_HERE)
  }

  /**
   * The parsed URL, when it is http or https, carries no credentials and, as a literal address, is let in. A name is judged when it is
   * connected to.
   * @throws {GatewayError} `SG_ERR_EGRESS_BLOCKED` saying what is wrong
   */
  checkUrl(url: string | URL): URL {
    if (!URL.canParse(String(url))) throw blocked('That URL', 'it cannot be read')
    const parsed = new URL(url)
    const defaultPort = DEFAULT_PORTS[parsed.protocol]
    if (!defaultPort) throw blocked('That URL', 'its scheme is not http or https')
    if (parsed.username || parsed.password) throw blocked(parsed.host, 'the URL carries credentials')
    const host = bareHost(parsed.hostname)
    const refusal = isIP(host)
      ? this.#refusal(parsed.host, host, this.#trusts(host, parsed.port || defaultPort))
      : undefined
    if (refusal) throw refusal
    return parsed
  }

  /** Ends idle connections; requests in flight are finished. */
  close(): Promise<void> {
    return this.dispatcher.close()
  }

  #trusts(host: string, port: string): boolean {
    if (this.#allowPrivateNetworks) return true
    const name = (isIP(host) === 6 ? `[${host}]` : host.replace(/\.$/, '')).toLowerCase()
    return this.#allowedHosts.has(name) || this.#allowedHosts.has(`${name}:${port}`)
  }

  #refusal(host: string, address: string, trusted: boolean): GatewayError | undefined {
    const verdict = judge(address)
    if (verdict === 'forbidden') return blocked(host, 'a link-local, metadata, multicast or reserved address')
    if (verdict === 'private' && !trusted) {
      return blocked(host, 'a private address, which neither allowPrivateNetworks nor allowedHosts lets in')
    }
    return undefined
  }

  #lookup(trusted: boolean): LookupFunction {
    return (hostname, options, callback) => {
      const fail = (thrown: unknown) => callback(toError(thrown), [])
      this.#resolve(hostname).then((addresses) => {
        // One bad address refuses the name: which of several is connected to is not ours to choose.
        for (const { address } of addresses) {
          const refusal = this.#refusal(hostname, address, trusted)
          if (refusal) return fail(refusal)
        }
        const [first] = addresses
        if (!first) return fail(blocked(hostname, 'the name has no address'))
        if (options.all) callback(null, [...addresses])
        else callback(null, first.address, first.family)
      }, fail)
    }
  }
}
