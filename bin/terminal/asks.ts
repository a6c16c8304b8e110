import pc from 'picocolors'
import { type Answer, GatewayError, type PermissionRequest, type Session } from '../../client/index.js'
import type { Keys } from './keys.js'
import { count, note, oneLine, safe } from './output.js'
import { inputSummary } from './session-view.js'
import { askWords } from './words.js'

const ASK_USER_QUESTION = 'AskUserQuestion'
const MAX_INPUT_LINES = 12
const MAX_LINE = 2000
const MAX_REASON = 200
/** As many options have a key of their own. */
const KEYS = 9

interface Question {
  question: string
  header?: string
  options: { label: string; description?: string }[]
  multiSelect?: boolean
}

/** Asks the person at the terminal, one thing after the other; what somebody else answers first is no longer asked. */
export class Asks {
  readonly #session: Session
  readonly #keys: Keys
  readonly #waiting = new Map<string, { request: PermissionRequest; aborter: AbortController }>()
  #isAsking = false
  /** Called around each question: the keyboard is needed. */
  onBusy: (isBusy: boolean) => void = () => {}

  constructor(session: Session, keys: Keys) {
    this.#session = session
    this.#keys = keys
  }

  add(request: PermissionRequest): void {
    if (this.#waiting.has(request.id)) return
    this.#waiting.set(request.id, { request, aborter: new AbortController() })
    void this.#askAll()
  }

  settle(requestId: string): void {
    this.#waiting.get(requestId)?.aborter.abort()
    this.#waiting.delete(requestId)
  }

  clear(): void {
    this.keepOnly(new Map())
  }

  /** What waits no longer is no longer asked. */
  keepOnly(waiting: ReadonlyMap<string, unknown>): void {
    for (const id of [...this.#waiting.keys()]) if (!waiting.has(id)) this.settle(id)
  }

  async #askAll(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    for (let next = this.#next(); next; next = this.#next()) {
      const { request, aborter } = next
      this.onBusy(true)
      try {
        const answer = await this.#ask(request, aborter.signal)
        // words of one's own that are let go of are no answer
        aborter.signal.throwIfAborted()
        await this.#session.answer(request.id, answer)
      } catch (error) {
        if (error instanceof GatewayError) note(pc.red(`  ${safe(error.message)}`))
        else if (!aborter.signal.aborted) throw error
      } finally {
        this.#waiting.delete(request.id)
        this.onBusy(false)
      }
    }
    this.#isAsking = false
  }

  #next() {
    return this.#waiting.values().next().value
  }

  #ask(request: PermissionRequest, signal: AbortSignal): Promise<Answer> {
    const questions = questionsOf(request)
    return questions ? this.#question(questions, signal) : this.#approval(request, signal)
  }

  async #approval(
    { toolName, title, description, input, decisionReason }: PermissionRequest,
    signal: AbortSignal,
  ): Promise<Answer> {
    const asked = `${pc.yellow('?')} ${pc.bold(title ? safe(title) : `${safe(toolName)} ${inputSummary(input, 80)}`)}`
    const choice = `  ${key('y')} allow  ${key('n')} deny  ${key('s')} deny and stop`
    const reasons = [description, decisionReason].flatMap((text) =>
      text ? [safe(text).replace(/\s+/g, ' ').trim()] : [],
    )
    const lines = inputLines(input)
    const whole = [...reasons, ...lines]
    const shown = [...reasons.map((text) => oneLine(text, MAX_REASON)), ...firstOf(lines)]
    const isCut = shown.join('\n') !== whole.join('\n')
    const say = (texts: string[]) => {
      if (texts.length > 0) note(texts.map((text) => pc.dim(`  ${text}`)).join('\n'))
    }
    const keys = ['y', 'n', 's']
    let pressed = await this.#keys.oneOf(isCut ? [...keys, 'v'] : keys, signal, {
      ask: () => {
        note(asked)
        say(shown)
      },
      offer: () => note(isCut ? `${choice}  ${key('v')} see all of it` : choice),
    })
    if (pressed === 'v')
      pressed = await this.#keys.oneOf(keys, signal, {
        // what asks is to stay on the screen below it
        ask: () => {
          say(whole)
          note(asked)
        },
        offer: () => note(choice),
      })
    note(pc.dim(pressed === 'y' ? '  allowed' : '  denied'))
    if (pressed === 'y') return 'allow'
    return { behavior: 'deny', message: 'The user said no.', ...(pressed === 's' && { interrupt: true }) }
  }

  async #question(questions: Question[], signal: AbortSignal): Promise<Answer> {
    const answers: Record<string, string> = {}
    for (const question of questions) {
      const answer = await this.#choose(question, signal)
      if (answer === undefined) return { behavior: 'deny', message: 'The user did not answer.' }
      answers[question.question] = answer
    }
    return { answers }
  }

  async #choose({ question, options, multiSelect }: Question, signal: AbortSignal): Promise<string | undefined> {
    const offered = options.slice(0, KEYS)
    const ask = () => {
      note(`${pc.yellow('?')} ${pc.bold(safe(question))}`)
      for (const [index, { label, description }] of offered.entries())
        note(
          `  ${key(String(index + 1))} ${safe(label)}${description ? pc.dim(` — ${oneLine(description, 100)}`) : ''}`,
        )
      // there is no key for more, but words
      for (const { label } of options.slice(offered.length)) note(`  ${key('o')} ${safe(label)}`)
    }
    const offer = () =>
      note(
        `  ${multiSelect ? `${key('enter')} take these  ` : ''}${key('o')} something else  ${key('n')} do not answer`,
      )
    const keys = [...offered.map((_, index) => String(index + 1)), 'o', 'n', ...(multiSelect ? ['enter'] : [])]
    const chosen = new Set<string>()
    for (let isAsked = false; ; ) {
      const pressed = await this.#keys.oneOf(keys, signal, { ask, offer, isAsked })
      isAsked = true
      if (pressed === 'n') return undefined
      if (pressed === 'o') {
        const words = await askWords('Your answer:', { signal })
        if (words?.trim()) return [...chosen, words.trim()].join(', ')
        // whoever gives up what they write, also by Ctrl-C, has refused nothing
        isAsked = false
        continue
      }
      if (pressed === 'enter') {
        if (chosen.size > 0) return [...chosen].join(', ')
        continue
      }
      const { label } = offered[Number(pressed) - 1]!
      if (!multiSelect) {
        note(pc.dim(`  ${safe(label)}`))
        return label
      }
      if (!chosen.delete(label)) chosen.add(label)
      note(pc.dim(`  chosen: ${safe([...chosen].join(', ')) || 'nothing'}`))
    }
  }
}

/** The questions of a request by which an agent asks its user; undefined when it is an approval, or asks nothing that can be read. */
export function questionsOf({ toolName, input }: PermissionRequest): Question[] | undefined {
  if (toolName !== ASK_USER_QUESTION || !Array.isArray(input.questions)) return undefined
  const questions: unknown[] = input.questions
  return questions.length > 0 && questions.every(isQuestion) ? questions : undefined
}

/** Written by a model: nothing says that it looks as it should. */
function isQuestion(value: unknown): value is Question {
  const { question, options } = (value ?? {}) as Record<string, unknown>
  return (
    typeof question === 'string' &&
    Array.isArray(options) &&
    options.every((option) => typeof option?.label === 'string')
  )
}

const key = (name: string): string => pc.bold(`[${name}]`)

/** What is about to happen; a backslash that is part of it is written as two. */
const inputLines = (input: object): string[] =>
  safe(JSON.stringify(input, undefined, 2).replace(/\\./g, (escaped) => (escaped === '\\n' ? '\n' : escaped)))
    .split('\n')
    .slice(1, -1)

/** In full where it is short: what asks is to stay on the screen beside it. */
function firstOf(lines: string[]): string[] {
  const shown = lines.slice(0, MAX_INPUT_LINES).map(startOf)
  return lines.length > shown.length ? [...shown, `… ${lines.length - shown.length} more lines`] : shown
}

const startOf = (line: string): string =>
  line.length > MAX_LINE
    ? `${line.slice(0, MAX_LINE).replace(/\p{Surrogate}$/u, '')}… ${count(line.length - MAX_LINE)} more characters`
    : line
