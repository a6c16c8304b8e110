import { emitKeypressEvents } from 'node:readline'

interface Key {
  name?: string
  ctrl?: boolean
  sequence?: string
}

/** Whether somebody is there to be asked. */
export const isInteractive = (): boolean => Boolean(process.stdin.isTTY && process.stderr.isTTY)

/** Keys one by one, while somebody listens; Ctrl-C goes to `onInterrupt` then, as the terminal sends no signal. */
export class Keys {
  readonly #onInterrupt: () => void
  #listener: ((key: string) => void) | undefined
  readonly #onKeypress = (text: string | undefined, key: Key) => {
    if (key.ctrl && key.name === 'c') this.#onInterrupt()
    else this.#listener?.(key.name === 'return' ? 'enter' : key.name === 'escape' ? 'escape' : (text ?? ''))
  }

  constructor(onInterrupt: () => void) {
    this.#onInterrupt = onInterrupt
  }

  /** Waits for one of these keys. */
  async oneOf(keys: readonly string[], signal: AbortSignal): Promise<string> {
    emitKeypressEvents(process.stdin)
    process.stdin.setRawMode(true)
    process.stdin.resume()
    process.stdin.on('keypress', this.#onKeypress)
    try {
      return await new Promise<string>((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        this.#listener = (pressed) => {
          const key = pressed.toLowerCase()
          if (keys.includes(key)) resolve(key)
        }
      })
    } finally {
      this.#listener = undefined
      process.stdin.off('keypress', this.#onKeypress)
      process.stdin.setRawMode(false)
      process.stdin.pause()
    }
  }
}
