import { createClient, GatewayError } from '../../client/index.js'

/** Where the API is: what the page that the gateway serves says of itself, against the page's own address. */
export const apiBase = new URL(
  document.querySelector<HTMLMetaElement>('meta[name="gateway-base"]')?.content ?? '..',
  document.baseURI,
).href.replace(/\/+$/, '')

/** The gateway. Who asks is in a cookie that no script can read. */
export const client = createClient({ baseUrl: apiBase })

export type Query = Record<string, string | number | undefined>

/**
 * What the client has no method for: one request, its JSON, and the same errors.
 * @param path below the API's base: `/usage`
 */
export async function request<T>(
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE',
  path: string,
  { query = {}, body, signal }: { query?: Query; body?: unknown; signal?: AbortSignal } = {},
): Promise<T> {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
  const response = await fetch(`${apiBase}${path}${search.size > 0 ? `?${search}` : ''}`, {
    method,
    credentials: 'same-origin',
    headers: { accept: 'application/json', ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
  }).catch((cause: unknown) => {
    signal?.throwIfAborted()
    throw new GatewayError('The gateway did not answer.', { status: 0, code: 'SG_CLIENT_UNREACHABLE', cause })
  })
  const text = await response.text()
  const content = parsed(text)
  if (response.ok) return content as T
  const { detail, code, errors } = (content ?? {}) as {
    detail?: string
    code?: string
    errors?: GatewayError['errors']
  }
  throw new GatewayError(detail ?? `The server answered ${response.status}, and not as a gateway does.`, {
    status: response.status,
    code: code ?? 'SG_CLIENT_UNREACHABLE',
    ...(errors && { errors }),
  })
}

function parsed(text: string): unknown {
  try {
    return text ? JSON.parse(text) : undefined
  } catch {
    return undefined
  }
}

/** Of any failure, one sentence for a person. */
export const sentenceOf = (error: unknown): string =>
  error instanceof GatewayError ? error.detail : error instanceof Error ? error.message : String(error)
