import type { FastifyReply } from 'fastify'

/** How much a client wants a media type: of the ranges in its `Accept` that match, the most specific counts (RFC 9110, 12.5.1). */
function qualityOf(type: string, ranges: ReadonlyMap<string, number>): number {
  return ranges.get(type) ?? ranges.get(`${type.slice(0, type.indexOf('/'))}/*`) ?? ranges.get('*/*') ?? 0
}

function rangesOf(accept: string): Map<string, number> {
  const ranges = new Map<string, number>()
  for (const part of accept.toLowerCase().split(',')) {
    const [range = '', ...parameters] = part.split(';').map((text) => text.trim())
    const weight = parameters.find((parameter) => parameter.startsWith('q='))
    const quality = weight === undefined ? 1 : Number(weight.slice(2))
    ranges.set(range, quality >= 0 && quality <= 1 ? quality : 0)
  }
  return ranges
}

/** Whether a client that is given JSON or another type wants the other: it names it and likes JSON no better, or likes it best. */
export function prefers(type: string, accept: string | undefined): boolean {
  if (accept === undefined) return false
  const ranges = rangesOf(accept)
  const other = qualityOf(type, ranges)
  const json = qualityOf('application/json', ranges)
  return other > json || (other > 0 && other === json && ranges.has(type))
}

/** Whether it wants the events as a stream. */
export const prefersEventStream = (accept: string | undefined): boolean => prefers('text/event-stream', accept)

/** Says that what is answered depends on a header, beside those that were named before: a cache before the gateway would give it to others. */
export const variesBy = (reply: FastifyReply, header: string): FastifyReply =>
  reply.header('vary', [reply.getHeader('vary') ?? [], header].flat().join(', '))

/** What is answered depends on `Accept`, and is of this moment. */
export const answerAsAccepted = (reply: FastifyReply): FastifyReply =>
  variesBy(reply, 'Accept').header('cache-control', 'no-store')
