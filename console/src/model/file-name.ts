import { cut } from './visible.js'

const MAX_LENGTH = 80
const ENDING = /(?<=[^./])\.[a-z0-9]{1,10}$/i
/** Letters and digits of every script, and nothing that is not seen or names a folder. */
const OTHERS = /[^\p{L}\p{M}\p{N}_.-]+/gu

/** What a file is saved as, by how an agent or a user calls it: its ending stays, however long the name is. */
export function fileNameOf(text: string, without: string): string {
  const ending = ENDING.exec(text)?.[0] ?? ''
  const name = text
    .slice(0, text.length - ending.length)
    .normalize('NFKC')
    .replace(OTHERS, '-')
  return (cut(name.replace(/^[-.]+/, ''), MAX_LENGTH).replace(/[-.]+$/, '') || without) + ending
}
