import type { AgentRow } from '../agent-table.js'

/** What an agent has said in a turn. */
interface Said {
  readonly hasSpoken: boolean
  readonly lastPiece: string
  readonly lastText: string
}

const CUT_OFF = 'The answer of the model was cut off each time that the agent asked for it.'

/** What an agent said that counted nothing of it: nothing, or the same beginning again and again; else its endpoint tells no tokens. */
function cutOff(said: string): string | undefined {
  if (said === '') return ''
  const again = `${said}${said}`.indexOf(said, 1)
  return again < said.length ? CUT_OFF : undefined
}

/** Of what a message is quoted with. */
const MAX_QUOTED = 200

/** Which opencode and kilo have, and do not list. */
const UNLISTED = 'compact'

/**
 * Why an agent said nothing that takes all that begins with a slash for a command: what is none, a path say, it drops.
 * @param listed its commands, as far as it has told
 * @returns undefined for what is no such text, or a command
 */
function unknownCommand(text: string, listed: readonly { name: string }[]): string | undefined {
  const [, name] = /^\s*\/(\S+)/.exec(text) ?? []
  if (name === undefined || name === UNLISTED || listed.length === 0 || listed.some((one) => one.name === name))
    return undefined
  return `The agent takes what begins with a slash for a command, lists none named ${name.slice(0, MAX_QUOTED)}, and ended the turn without a word: its model may not have been asked. Begin the message with something else.`
}

/**
 * Why the model of an agent gave no answer, when it may not have: the agents that do not say so end the turn as if it had.
 * @param how.text the message that the turn was to answer
 * @param how.toldTokens whether the end of the turn told its tokens
 */
export function whyUnanswered(
  { acp }: AgentRow,
  how: { text: string; toldTokens: boolean; said: Said; commands: readonly { name: string }[] },
): string | undefined {
  const { text, toldTokens, said, commands } = how
  const { refusesInText, countsWholeAnswers, endsUnanswered } = acp ?? {}
  if (endsUnanswered && !said.hasSpoken) {
    const command = unknownCommand(text, commands)
    if (command !== undefined) return command
  }
  // a command of the agent's own uses no tokens either; the second kind takes one with a $ or after a blank, too
  if (refusesInText && !text.startsWith('/')) return said.lastPiece
  if (endsUnanswered && toldTokens && !text.startsWith('/') && !said.hasSpoken) return ''
  if (countsWholeAnswers && toldTokens && !/^\s*[/$]/.test(text)) return cutOff(said.lastText)
  return undefined
}
