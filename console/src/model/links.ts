export interface SafeLink {
  href: string
  /** What is shown of where it leads: the host in its ASCII form, or the address of a mail. */
  target: string
}

const MAX_LENGTH = 4_000

/** Where a link of an agent may lead: http, https and mailto; undefined for everything else, which is shown as text. */
export function safeLink(address: string): SafeLink | undefined {
  if (address.length > MAX_LENGTH || /[\u0000-\u0020\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(address))
    return undefined
  let url: URL
  try {
    // no base: what is relative would lead into the console
    url = new URL(address)
  } catch {
    return undefined
  }
  if (url.protocol === 'mailto:') {
    // a mail that is already written is nobody's wish
    const to = url.pathname
    return to ? { href: `mailto:${to}`, target: to } : undefined
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined
  // `https://bank.example@evil.example/` is read as the first
  if (url.username || url.password) return undefined
  return { href: url.href, target: url.host }
}
