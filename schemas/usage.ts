import { type Static, type TObject, Type } from '@sinclair/typebox'
import { Count, described, Several, SHAPE, StringEnum, Text } from './common.js'

export const UsageGroup = described(StringEnum('day', 'profile', 'agent', 'person'), 'What a row is the sum of.')
export type UsageGroup = Static<typeof UsageGroup>

/** A day, in UTC. Whether there is such a day is checked beside the pattern. */
const Day = (description: string) =>
  Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}$', description, [SHAPE]: 'a day, as in 2026-01-31' })
const GROUPS = UsageGroup.anyOf.map(({ const: name }) => name)

export const UsageQuery = Type.Object(
  {
    from: Type.Optional(Day('The first day, UTC. Default: 29 days before `to`.')),
    to: Type.Optional(Day('The last day, UTC, at most 400 days after `from`. Default: today.')),
    by: Type.Optional(
      Several(GROUPS, 'What rows are summed by, one or several: `day`, `profile`, `agent`, `person`. Default: `day`.'),
    ),
  },
  { additionalProperties: false },
)
export type UsageQuery = Static<typeof UsageQuery>

/** What is counted; a row is the sum of many. */
export const UsageNumbers = Type.Object({
  turns: Count('Turns that ended.'),
  turnsSucceeded: Count('Of these, ended well.'),
  turnsFailed: Count('Of these, ended with an error.'),
  turnsInterrupted: Count('Of these, interrupted: by somebody, or by the end of the process.'),
  inputTokens: Count('Tokens of the turns.'),
  outputTokens: Count('Tokens of the turns.'),
  cacheCreationTokens: Count('Tokens of the turns.'),
  cacheReadTokens: Count('Tokens of the turns.'),
  approvalsAsked: Count('Permission requests and questions.'),
  approvalsAnswered: Count('Of these, answered by somebody.'),
  approvalsExpired: Count('Of these, not answered in time.'),
  approvalWaits: Count('Of these, of which is known how long they waited.'),
  approvalWaitMs: Count('How long these waited together, milliseconds.'),
  approvalWaitMaxMs: Count('How long the slowest of these waited, milliseconds.'),
  jobs: Count('Runs of jobs that ended, each attempt for itself.'),
})
export type UsageNumbers = Static<typeof UsageNumbers>

export const UsageRow = Type.Object(
  {
    day: Type.Optional(Text('UTC. As the next three: present when it is summed by.')),
    profile: Type.Optional(Text('As in SessionInfo.')),
    agent: Type.Optional(Text('The command-line agent, or `provider`.')),
    person: Type.Optional(
      Text('Name of the caller who asked for the turn, else of who created the session; empty: unknown.'),
    ),
    costUsd: Type.Optional(Type.Number({ description: 'Absent: no turn told one.' })),
    ...UsageNumbers.properties,
  },
  { description: 'What was used, summed.' },
)
export type UsageRow = Static<typeof UsageRow>

export const UsageReport = Type.Object(
  {
    from: Text('The first day, UTC.'),
    to: Text('The last day, UTC.'),
    by: Type.Array(UsageGroup),
    rows: Type.Array(UsageRow, {
      description: 'In the order of what they are summed by; what nothing was counted for has none.',
    }),
  },
  { description: 'What was used in these days.' },
)
export type UsageReport = Static<typeof UsageReport>

const namesOf = <T extends TObject>(schema: T) => Object.keys(schema.properties) as (keyof Static<T> & string)[]
/** The names of what is counted, in their order. */
export const USAGE_NUMBERS = namesOf(UsageNumbers)
