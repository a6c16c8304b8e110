import pc from 'picocolors'

/** Renders markdown plainly, line by line, while it is still being written: marks become weight, the text stays as it is. */
export class MarkdownLines {
  #isCode = false

  line(text: string): string {
    if (/^\s*(```|~~~)/.test(text)) {
      this.#isCode = !this.#isCode
      return pc.dim(text)
    }
    if (this.#isCode) return pc.cyan(text)
    const heading = /^#{1,6} +(.*)$/.exec(text)
    if (heading) return pc.bold(inline(heading[1]!))
    if (/^\s*([-*_])( *\1){2,}\s*$/.test(text)) return pc.dim('─'.repeat(20))
    const item = /^(\s*)[-*+] +(.*)$/.exec(text)
    if (item) return `${item[1]}• ${inline(item[2]!)}`
    const quote = /^> ?(.*)$/.exec(text)
    if (quote) return pc.dim(`│ ${inline(quote[1]!)}`)
    return inline(text)
  }
}

const inline = (text: string): string =>
  text
    .split(/(`[^`]+`)/)
    .map((part) =>
      part.startsWith('`') && part.length > 2
        ? pc.cyan(part.slice(1, -1))
        : part
            .replace(/\*\*([^*]+)\*\*|__([^_]+)__/g, (_, a, b) => pc.bold(a ?? b))
            .replace(/\[([^\]]+)\]\(([^)\s]+)\)/g, (_, label, url) => `${label} (${pc.underline(url)})`),
    )
    .join('')
