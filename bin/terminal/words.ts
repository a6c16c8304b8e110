import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import pc from 'picocolors'

/** A line that comes so soon after another is of what was pasted with it. */
export const PASTE_MS = 50

interface Asking {
  /** What stands there to be changed. */
  initial?: string
  /** Lets go of it. */
  signal?: AbortSignal
  /** What is written is not shown. */
  isSecret?: boolean
}

/** Words that somebody at the terminal writes, of several lines where they are pasted; undefined when they leave instead, or are let go of. */
export function askWords(question: string, { initial, signal, isSecret }: Asking = {}): Promise<string | undefined> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const prompt = `${pc.yellow('?')} ${pc.bold(question)} `
  const reader = createInterface({
    input: process.stdin,
    output: isSecret ? nowhere : process.stderr,
    terminal: true,
    historySize: 0,
    prompt,
  })
  const lines: string[] = []
  let whole: NodeJS.Timeout | undefined
  return new Promise((resolve) => {
    let isOver = false
    const end = (words: string | undefined) => {
      if (isOver) return
      isOver = true
      clearTimeout(whole)
      signal?.removeEventListener('abort', leave)
      process.stdin.off('keypress', onKeypress)
      reader.close()
      if (words === undefined || isSecret) process.stderr.write('\n')
      resolve(words)
    }
    const leave = () => end(undefined)
    const onKeypress = (_text: string | undefined, { name }: { name?: string }) => {
      if (name === 'escape') leave()
    }
    reader.on('line', (line) => {
      lines.push(line)
      clearTimeout(whole)
      // the last line of what is pasted may have no end of its own
      whole = setTimeout(() => reader.line === '' && end(lines.join('\n')), PASTE_MS)
    })
    reader.on('SIGINT', leave)
    reader.on('close', leave)
    const ask = () => {
      // not before the terminal shows nothing by itself any more
      if (isSecret) process.stderr.write(prompt)
      reader.prompt(true)
    }
    // the shell has written below it, and the keyboard was let go of: the terminal would show itself what is typed at once
    reader.on('SIGCONT', () => {
      process.stdin.setRawMode(true)
      ask()
    })
    signal?.addEventListener('abort', leave)
    process.stdin.on('keypress', onKeypress)
    if (signal?.aborted) return leave()
    ask()
    if (initial !== undefined) reader.write(initial)
  })
}
