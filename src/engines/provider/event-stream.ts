import { APICallError } from 'ai'
import { oneLine } from '../../lib/one-line.js'

type Bytes = Uint8Array<ArrayBuffer>

/** How much is read of an answer that is none, for its beginning to be told. */
const MAX_BYTES = 4096

/** Who goes on for ever with a refusal, or with one event, would take the memory of every session. */
const MAX_REFUSAL_BYTES = 1024 ** 2
const MAX_EVENT_BYTES = 64 * 1024 ** 2

/** An empty line, as the three kinds of line ends make one. */
const EVENT_ENDS = ['\n\n', '\n\r\n', '\r\r']

/** No byte of an answer comes behind this one. */
const DONE = /[\r\n]data: ?\[DONE\]/

/** Nor an event behind one of these, which are Anthropic's and those of OpenAI's responses. */
const LAST_EVENT =
  /[\r\n](?:event: ?|data: ?\{"type": ?")(?:message_stop|response\.(?:completed|incomplete|failed))["\r\n]/

/** Of either, the longest. */
const MARK_BYTES = 64

/** How long the end of the connection's answer is waited for behind that, so that the next call finds the connection open; milliseconds. */
const END_MS = 1_000

/** What Amazon sends instead of lines. */
const FRAMED = 'application/vnd.amazon.eventstream'

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
    if (!response.body) return response
    if (!response.ok) return withBody(response, beginningOf(response.body))
    if (!/json$|html|^text\/plain$|xml$/i.test(type)) {
      const body = type === FRAMED ? response.body.pipeThrough(boundedFrames()) : events(response.body.getReader())
      return withBody(response, body)
    }
    const reader = response.body.getReader()
    const chunks: Bytes[] = []
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
    if (!DOCUMENT.test(begun())) return withBody(response, events(reader, chunks))
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

/**
 * The events of a body up to the last one: who keeps the connection open behind it, or resets it, has said all the same what there was to say.
 * @param chunks what is read already
 */
function events(reader: ReadableStreamDefaultReader<Bytes>, chunks: Bytes[] = []): ReadableStream<Bytes> {
  const isLast = lastOfEvents()
  return new ReadableStream({
    async pull(controller) {
      const chunk = chunks.shift() ?? (await reader.read()).value
      if (!chunk) return controller.close()
      try {
        const isOver = isLast(chunk)
        controller.enqueue(chunk)
        if (!isOver) return
      } catch (error) {
        reader.cancel().catch(() => {})
        throw error
      }
      controller.close()
      leave(reader)
    },
    cancel: (reason) => reader.cancel(reason),
  })
}

function leave(reader: ReadableStreamDefaultReader<Bytes>): void {
  const cancel = () => reader.cancel().catch(() => {})
  const timer = setTimeout(cancel, END_MS)
  void reader
    .read()
    .then(cancel, cancel)
    .then(() => clearTimeout(timer))
}

/** So much of a body as words are looked for in. */
const beginningOf = (body: ReadableStream<Bytes>) => {
  let bytes = 0
  return body.pipeThrough(
    new TransformStream<Bytes, Bytes>({
      transform(chunk, controller) {
        bytes += chunk.length
        controller.enqueue(chunk)
        if (bytes >= MAX_REFUSAL_BYTES) controller.terminate()
      },
    }),
  )
}

/** Tells of each piece whether the last event ends in it. Refuses to read on in an event that does not end. */
function lastOfEvents(): (chunk: Bytes) => boolean {
  let bytes = 0
  let isLast = false
  // what is looked for may come in two pieces
  let before = '\n'
  return (chunk) => {
    const text = before + Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length).toString('latin1')
    if (DONE.test(text)) return true
    const mark = isLast ? -1 : text.search(LAST_EVENT)
    isLast ||= mark >= 0
    const end = Math.max(...EVENT_ENDS.map((blank) => text.lastIndexOf(blank)))
    if (isLast && end > mark) return true
    bytes = end < 0 ? bytes + chunk.length : text.length - end
    if (bytes > MAX_EVENT_BYTES) throw new Error(TOO_LONG)
    before = text.slice(isLast ? -2 : -MARK_BYTES)
    return false
  }
}

/** The bound of Amazon's events, of which each begins with its length and none ends with an empty line. */
const boundedFrames = () => {
  let left = 0
  let length: number[] = []
  return new TransformStream<Bytes, Bytes>({
    transform(chunk, controller) {
      for (let at = 0; at < chunk.length; ) {
        if (left > 0) {
          const some = Math.min(left, chunk.length - at)
          at += some
          left -= some
          continue
        }
        length.push(chunk[at++]!)
        if (length.length < 4) continue
        const whole = Buffer.from(length).readUInt32BE()
        if (whole > MAX_EVENT_BYTES) return controller.error(new Error(TOO_LONG))
        left = Math.max(0, whole - length.length)
        length = []
      }
      controller.enqueue(chunk)
    },
  })
}

/** The same response with another body. Servers answer with a status and a reason that nobody may make a `Response` with. */
function withBody({ headers, ok, status, statusText, url }: Response, body: ReadableStream<Bytes>): Response {
  const said = { ok, status, statusText, url }
  return Object.defineProperties(
    new Response(body, { headers }),
    Object.fromEntries(Object.entries(said).map(([name, value]) => [name, { value }])),
  )
}

const TOO_LONG = `The provider wrote an event of more than ${MAX_EVENT_BYTES / 1024 ** 2} MiB, which is not read.`
