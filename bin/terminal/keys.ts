import { emitKeypressEvents } from 'node:readline'

interface Key {
  name?: string
  ctrl?: boolean
  sequence?: string
}

/** Whether somebody is there to be asked. */
export const isInteractive = (): boolean => Boolean(process.stdin.isTTY && process.stderr.isTTY)

/** Keys one by one, while somebody listens; Ctrl-C goes to `onInterrupt` then, and Ctrl-Z stops the job, as the terminal sends no signal. */
export class Keys {
  readonly #onInterrupt: () => void
  #listener: ((key: string) => void) | undefined
  readonly #onKeypress = (text: string | undefined, key: Key) => {
    if (key.ctrl && key.name === 'c') this.#onInterrupt()
    else if (key.ctrl && key.name === 'z') this.#stopJob()
    else this.#listener?.(key.name === 'return' ? 'enter' : key.name === 'escape' ? 'escape' : (text ?? ''))
  }

  constructor(onInterrupt: () => void) {
    this.#onInterrupt = onInterrupt
  }

  /**
   * Waits for one of these keys.
   * @param onReady called once a key is an answer, so that nobody presses one too early
   * @param onContinued called when the job goes on that was stopped meanwhile: the shell has written below the question
   */
  async oneOf(
    keys: readonly string[],
    signal: AbortSignal,
    onReady: () => void,
    onContinued: () => void,
  ): Promise<string> {
    emitKeypressEvents(process.stdin)
    process.stdin.setRawMode(true)
    process.stdin.resume()
    process.stdin.on('keypress', this.#onKeypress)
    const goOn = () => {
      // the shell has taken the mode back, and one that is taken for set is not set
      process.stdin.setRawMode(false)
      process.stdin.setRawMode(true)
      onContinued()
    }
    process.on('SIGCONT', goOn)
    let onAbort = () => {}
    try {
      return await new Promise<string>((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        onAbort = () => reject(signal.reason)
        signal.addEventListener('abort', onAbort)
        this.#listener = (pressed) => {
          const key = pressed.toLowerCase()
          if (keys.includes(key)) resolve(key)
        }
        onReady()
      })
    } finally {
      this.#listener = undefined
      signal.removeEventListener('abort', onAbort)
      process.off('SIGCONT', goOn)
      process.stdin.off('keypress', this.#onKeypress)
      process.stdin.setRawMode(false)
      process.stdin.pause()
    }
  }

  /** As the terminal does it: all processes of the job. */
  #stopJob(): void {
    if (process.platform === 'win32') return
    process.stdin.setRawMode(false)
    process.kill(0, 'SIGTSTP')
    // where no shell is there to let it go on, the system stops nothing; what was pressed with it may have answered
    setImmediate(() => this.#listener && process.stdin.setRawMode(true))
  }
}
