import type { Question } from './questions.js'

/** What was chosen of one question, and what was written beside it. */
export interface Choice {
  labels: readonly string[]
  other: string
}

export const NOTHING: Choice = { labels: [], other: '' }

/** Chosen, or not any more; of one where one only can be chosen, instead of what was. What was written stays where several can be. */
export function toggled(choice: Choice, label: string, multiSelect: boolean): Choice {
  if (!multiSelect) return { labels: [label], other: '' }
  const has = choice.labels.includes(label)
  return { ...choice, labels: has ? choice.labels.filter((one) => one !== label) : [...choice.labels, label] }
}

/** Own words: instead of an option where one only can be chosen. */
export const written = (choice: Choice, other: string, multiSelect: boolean): Choice =>
  multiSelect || other.trim() === '' ? { ...choice, other } : { labels: [], other }

/** By the text of each question; `missing`: the questions that have no answer. */
export function answersFrom(
  questions: readonly Question[],
  choices: readonly Choice[],
): { answers: Record<string, string>; missing: readonly number[] } {
  const given = questions.map(({ options }, at) => {
    const { labels, other } = choices[at] ?? NOTHING
    // in the order in which they were offered
    const chosen = options.map(({ label }) => label).filter((label) => labels.includes(label))
    return [...chosen, ...(other.trim() ? [other.trim()] : [])].join(', ')
  })
  return {
    answers: Object.fromEntries(questions.map(({ question }, at) => [question, given[at]!])),
    missing: given.flatMap((text, at) => (text === '' ? [at] : [])),
  }
}
