import { APICallError } from 'ai'
import { oneLine } from '../../lib/one-line.js'

/** How much is read of an answer that is none, for its beginning to be told. */
const MAX_BYTES = 4096

/** No event of a stream begins so: a document does, in JSON or HTML. */
const DOCUMENT = /^\s*[{[<]/

const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308]

/**
 * What a model is reached with. No redirect is followed: it would carry the key, and what was said, to wherever it points, or ask there for
 * something else than an answer. The SDK finds no event in a document with the status of a success, as a proxy's sign-in or an endpoint that
 * does not stream sends it, and tells nothing of it; here it is refused, and told by its beginning.
 */
export const eventStreamFetch =
  (inner: typeof fetch, redact: (text: string) => string): typeof fetch =>
  async (input, init) => {
    const response = await inner(input, { ...init, redirect: 'manual' })
    if (REDIRECTS.includes(response.status)) {
      await response.body?.cancel().catch(() => {})
      throw redirected(response, redact)
    }
    const type = response.headers.get('content-type')?.split(';')[0]?.trim() ?? ''
    if (!response.ok || !response.body || !/json$|html|^text\/plain$|xml$/i.test(type)) return response
    const reader = response.body.getReader()
    const chunks: Uint8Array[] = []
    const begun = () => new TextDecoder().decode(Buffer.concat(chunks))
    const read = async (enough: () => boolean) => {
      while (!enough()) {
        const { done, value } = await reader.read()
        if (done) return
        chunks.push(value)
      }
    }
    const isMuch = () => chunks.reduce((bytes, { length }) => bytes + length, 0) >= MAX_BYTES
    await read(() => begun().trim() !== '' || isMuch())
    if (!DOCUMENT.test(begun())) return new Response(goingOn(chunks, reader), response)
    await read(isMuch).catch(() => {})
    reader.cancel().catch(() => {})
    const message = `The provider answered with ${type}, not with a stream of events: ${oneLine(redact(begun()))}`
    throw new APICallError({ message, url: response.url, requestBodyValues: {}, isRetryable: false })
  }

function redirected({ status, url, headers }: Response, redact: (text: string) => string): APICallError {
  const location = headers.get('location') ?? ''
  const target = oneLine(redact(URL.canParse(location, url || undefined) ? new URL(location, url).href : location))
  const message = `The provider redirects${target && ` to ${target}`}, which is not followed: the baseUrl of the profile has to be where it answers itself.`
  return new APICallError({ message, url, statusCode: status, requestBodyValues: {}, isRetryable: false })
}

/** The body from its beginning, of which some is read already. */
function goingOn(
  chunks: Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const chunk = chunks.shift() ?? (await reader.read()).value
      if (chunk) controller.enqueue(chunk as Uint8Array<ArrayBuffer>)
      else controller.close()
    },
    cancel: (reason) => reader.cancel(reason),
  })
}
