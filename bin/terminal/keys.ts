import { emitKeypressEvents } from 'node:readline'

interface Key {
  name?: string
  ctrl?: boolean
  sequence?: string
}

interface Asking {
  ask: () => void
  offer: () => void
  isAsked?: boolean
}

/** For how long nothing was pressed before a key answers. */
const QUIET_MS = 500

/** Whether somebody is there to be asked. */
export const isInteractive = (): boolean => Boolean(process.stdin.isTTY && process.stderr.isTTY)

/**
 * Keys one by one, while somebody listens; Ctrl-C goes to `onInterrupt` then, Ctrl-D to `onEnd`, and Ctrl-Z stops the job, as the terminal
 * does none of it.
 */
export class Keys {
  readonly #onInterrupt: () => void
  readonly #onEnd: () => void
  #listener: ((key: string) => void) | undefined
  readonly #onKeypress = (text: string | undefined, key: Key) => {
    if (key.ctrl && key.name === 'c') this.#onInterrupt()
    else if (key.ctrl && key.name === 'd') this.#onEnd()
    else if (key.ctrl && key.name === 'z') this.#stopJob()
    else this.#listener?.(key.name === 'return' ? 'enter' : key.name === 'escape' ? 'escape' : (text ?? ''))
  }

  constructor(onInterrupt: () => void, onEnd: () => void) {
    this.#onInterrupt = onInterrupt
    this.#onEnd = onEnd
  }

  /**
   * Waits for one of these keys. One that was pressed before the question, or in the middle of something else, answers nothing.
   * @param ask says the question; again when the job goes on that was stopped meanwhile, as the shell has written below it
   * @param offer says which keys there are, once one of them is an answer
   * @param isAsked what is asked stands there already, with its keys
   */
  async oneOf(keys: readonly string[], signal: AbortSignal, { ask, offer, isAsked = false }: Asking): Promise<string> {
    emitKeypressEvents(process.stdin)
    process.stdin.setRawMode(true)
    process.stdin.resume()
    process.stdin.on('keypress', this.#onKeypress)
    let goOn = () => {}
    let onAbort = () => {}
    let quiet: ReturnType<typeof setTimeout> | undefined
    let presses = 0
    let isOffered = isAsked
    try {
      return await new Promise<string>((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason)
        onAbort = () => reject(signal.reason)
        signal.addEventListener('abort', onAbort)
        const take = (pressed: string) => {
          const key = pressed.toLowerCase()
          if (keys.includes(key)) resolve(key)
          // somebody writes, and the next letter may be a key
          else wait()
        }
        const wait = () => {
          const before = ++presses
          this.#listener = wait
          clearTimeout(quiet)
          const listen = () => {
            if (presses !== before) return
            this.#listener = take
            if (!isOffered) offer()
            isOffered = true
          }
          // what was pressed meanwhile is read first, also where the machine has kept this process waiting
          quiet = setTimeout(() => setImmediate(listen), QUIET_MS)
        }
        const begin = () => {
          isOffered = false
          ask()
          wait()
        }
        goOn = () => {
          // the shell has taken the mode back, and one that is taken for set is not set
          process.stdin.setRawMode(false)
          process.stdin.setRawMode(true)
          begin()
        }
        process.on('SIGCONT', goOn)
        if (isAsked) this.#listener = take
        else begin()
      })
    } finally {
      clearTimeout(quiet)
      presses = -1
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
