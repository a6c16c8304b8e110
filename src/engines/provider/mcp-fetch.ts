/** Told to the model: what a server did before its end nobody knows. */
const ENDED = 'The connection to the server ended before it answered. The call may or may not have taken effect.'

/**
 * What an MCP server is reached with. The SDK waits for ever for an answer when the stream that it was to come in has ended, as it does with
 * a server that dies or a proxy that has waited long enough: here the end of a stream answers what was asked in it.
 * @param onListenEnd called when the one stream has ended in which a server of the `sse` transport answers everything
 */
export const mcpFetch =
  (type: 'http' | 'sse', onListenEnd: () => void): typeof fetch =>
  async (input, init) => {
    const response = await fetch(input, init)
    if (!response.body || !/^text\/event-stream\b/i.test(response.headers.get('content-type') ?? '')) return response
    if (type === 'sse') {
      const last = () => {
        onListenEnd()
        return ''
      }
      return new Response(endingWith(response.body, last), response)
    }
    const id = idOf(init?.body)
    return id === undefined
      ? response
      : new Response(
          endingWith(response.body, () => failure(id)),
          response,
        )
  }

/** Of the request that a message is; notifications have none. */
const idOf = (body: unknown): unknown =>
  typeof body === 'string' ? (JSON.parse(body) as { id?: unknown }).id : undefined

/** As an event of its own, whatever was begun before it; whoever has an answer already takes no second one. */
const failure = (id: unknown): string => {
  const answer = { jsonrpc: '2.0', id, error: { code: -32000, message: ENDED } }
  return `\n\nevent: message\ndata: ${JSON.stringify(answer)}\n\n`
}

/** @param last what comes at the end, however that comes about */
function endingWith(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  last: () => string,
): ReadableStream<Uint8Array<ArrayBuffer>> {
  const reader = body.getReader()
  return new ReadableStream({
    async pull(controller) {
      const { value } = await reader.read().catch(() => ({ value: undefined }))
      if (value) return controller.enqueue(value)
      controller.enqueue(new TextEncoder().encode(last()))
      controller.close()
    },
    cancel: (reason) => reader.cancel(reason),
  })
}
