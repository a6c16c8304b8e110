/** Why no page has such an origin: a browser sends scheme, host and a port that is not the usual one. */
export function originProblem(entry: string): string | undefined {
  const url = URL.canParse(entry) ? new URL(entry) : undefined
  if (url?.origin === entry) return undefined
  // those of applications, which have no form that is known here
  if (url?.origin === 'null' && /^[a-z][a-z0-9+.-]*:\/\/[^/?#]+$/.test(entry)) return undefined
  const isWeb = url !== undefined && url.origin !== 'null'
  const hint = isWeb ? `write ${url.origin}` : 'write it as https://app.example.com, each origin in an entry of its own'
  return `no page has the origin ${JSON.stringify(entry)}; ${hint}`
}

/** Why a server cannot be told to listen there. */
export function listenHostProblem(host: string): string | undefined {
  if (host === '')
    return 'must not be empty: that would be every address of this machine; write 0.0.0.0 or :: if it is meant'
  const [, inside] = /^\[(.*)\]$/.exec(host) ?? []
  return inside === undefined ? undefined : `is an address in the brackets of a URL; write ${inside}`
}

/** Why nothing is sent to such a host. */
export function hostProblem(entry: string): string | undefined {
  if (/^(?:\[[0-9a-f:.]+\]|[^\s:/?#@[\]*,]+)(?::\d{1,5})?$/i.test(entry)) return undefined
  const isUrl = entry.includes('/') && !entry.includes('*') && URL.canParse(entry) && new URL(entry).host !== ''
  const form = 'write it as app.example.com, app.example.com:8443 or [::1]'
  const several = '* stands for nothing here: each host has an entry of its own'
  const hint = isUrl ? `write ${new URL(entry).host}` : entry.includes('*') ? several : form
  return `no host is named ${JSON.stringify(entry)}; ${hint}`
}
