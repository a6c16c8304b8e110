import type { ToolPart } from '../../../client/index.js'

/** Fields of an input that say best what a call is about, in this order. */
const TELLING = [
  'command',
  'file_path',
  'path',
  'notebook_path',
  'pattern',
  'query',
  'url',
  'description',
  'prompt',
  'name',
]

/** Fields that hold code and places, which read from left to right whatever they begin with: nothing in them moves a path or an argument. */
const CODE = new Set(['command', 'cmd', 'args', 'file_path', 'path', 'notebook_path', 'cwd', 'pattern', 'url'])
export const directionOf = (name: string, value: unknown): 'ltr' | 'auto' =>
  typeof value !== 'string' || CODE.has(name) ? 'ltr' : 'auto'

/** What a call is about, from its input: one value, as text. */
export function summaryOf(input: unknown): string {
  if (typeof input === 'string') return input
  if (typeof input !== 'object' || input === null) return ''
  const given = input as Record<string, unknown>
  for (const name of TELLING) {
    const value = given[name]
    if (typeof value === 'string' && value) return value
    if (Array.isArray(value) && value.every((part) => typeof part === 'string')) return value.slice(0, 50).join(' ')
  }
  return ''
}

/** What a call ran with: what it asked for, or what somebody allowed in its place. */
export const ranWith = ({ input, permission }: ToolPart): unknown => permission?.updatedInput ?? input

/** A block of a result, as it is shown. */
export type Output =
  | { type: 'text'; text: string }
  | { type: 'image'; mime: string; data: string }
  | { type: 'json'; value: unknown }

const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/
const MAX_IMAGE_CHARS = 8_000_000

/** An image that lies in the block itself; one that would have to be fetched is none. */
export function imageOf(block: unknown): { mime: string; data: string } | undefined {
  const { type, source, data, mimeType, media_type } = (block ?? {}) as Record<string, unknown>
  if (type !== 'image') return undefined
  const from = (
    typeof source === 'object' && source !== null ? source : { data, media_type: mimeType ?? media_type }
  ) as Record<string, unknown>
  const mime = String(from.media_type ?? from.mimeType ?? '')
  const isImage = typeof from.data === 'string' && from.data.length <= MAX_IMAGE_CHARS && IMAGES.has(mime)
  return isImage && BASE64.test(from.data as string) ? { mime, data: from.data as string } : undefined
}

/** The result of a call, in parts that can be shown. */
export function outputsOf(result: unknown): Output[] {
  if (result === undefined || result === null || result === '') return []
  if (typeof result === 'string') return [{ type: 'text', text: result }]
  if (!Array.isArray(result)) return [{ type: 'json', value: result }]
  // fifty thousand of something is data, and not blocks
  if (result.length > 500) return [{ type: 'json', value: result }]
  return result.map((block: unknown) => {
    const { type, text, content } = (block ?? {}) as Record<string, unknown>
    if (type === 'text' && typeof text === 'string') return { type, text }
    const image = imageOf(block)
    if (image) return { type: 'image', ...image }
    const inner = content as Record<string, unknown> | undefined
    if (type === 'content' && inner?.type === 'text' && typeof inner.text === 'string')
      return { type: 'text', text: inner.text }
    return { type: 'json', value: block }
  })
}
