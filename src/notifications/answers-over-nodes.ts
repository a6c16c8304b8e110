import type { InboxAnswerResult } from '../../schemas/notifications.js'
import { type Cluster, wasUnheard } from '../cluster/cluster.js'
import { type ErrorCode, GatewayError } from '../errors.js'
import type { ClusterNode } from '../storage/cluster.js'
import type { GivenAnswer } from './bulk-answers.js'

type Answers = readonly GivenAnswer[]

/** What the caller sent, to be sent on. */
export interface SentAnswers {
  path: string
  headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** As a `NodeRequest` has it. */
  client: string
  /** Of the whole request, under which each answer is kept. */
  key?: string | undefined
}

/** By which a node says under which key the answers that it passes on are to be kept. */
export const ANSWERS_KEY_HEADER = 'sg-answers-key'

/** Of the request as it came, and not of the part of it that goes on. */
const OF_THE_WHOLE: ReadonlySet<string> = new Set([
  'content-length',
  'content-encoding',
  'transfer-encoding',
  'idempotency-key',
  ANSWERS_KEY_HEADER,
])

/**
 * Gives each answer where its session is: those of one node together, as the caller would have.
 * @param here gives those of this node
 * @returns what became of each, in their order; never rejects
 */
export async function answerOverNodes(
  answers: Answers,
  here: (answers: Answers) => Promise<InboxAnswerResult[]>,
  cluster: Pick<Cluster, 'where' | 'ask' | 'forget'>,
  sent: SentAnswers,
): Promise<InboxAnswerResult[]> {
  const results: InboxAnswerResult[] = []
  const give = async ({ node, indexes }: Group) => {
    const some = indexes.map((index) => answers[index]!)
    const given = node === 'here' ? await here(some) : await sendTo(node, some, cluster, sent)
    for (const [at, index] of indexes.entries()) results[index] = given[at]!
    return node === 'here' ? [] : indexes.filter((index) => isMissed(results[index]!))
  }
  let rest = [...answers.keys()]
  for (const _round of ['as remembered', 'as it is']) {
    const groups = await groupsOf(rest, answers, cluster)
    rest = (await Promise.all(groups.map(give))).flat()
    // where they are may be remembered from before they went elsewhere
    for (const index of rest) cluster.forget({ session: answers[index]!.sessionId })
    if (rest.length === 0) break
  }
  return results
}

/** Answers, by their places, to sessions of one node. */
interface Group {
  node: 'here' | ClusterNode
  indexes: number[]
}

async function groupsOf(
  indexes: readonly number[],
  answers: Answers,
  cluster: Pick<Cluster, 'where'>,
): Promise<Group[]> {
  const places = new Map<string, Promise<'here' | ClusterNode>>()
  const groups = new Map<number | 'here', Group>()
  const placeOf = (session: string) => {
    const place = places.get(session) ?? cluster.where({ session }).catch(() => 'here' as const)
    places.set(session, place)
    return place
  }
  const found = await Promise.all(indexes.map((index) => placeOf(answers[index]!.sessionId)))
  for (const [at, node] of found.entries()) {
    const key = node === 'here' ? node : node.n
    const group = groups.get(key) ?? { node, indexes: [] }
    group.indexes.push(indexes[at]!)
    groups.set(key, group)
  }
  return [...groups.values()]
}

/** The node that was asked does not have the session, and has done nothing. */
const isMissed = (result: InboxAnswerResult): boolean => !result.resolved && result.code === 'SG_ERR_SESSION_NOT_FOUND'

async function sendTo(
  node: ClusterNode,
  answers: Answers,
  cluster: Pick<Cluster, 'ask'>,
  { path, headers, client, key }: SentAnswers,
): Promise<InboxAnswerResult[]> {
  const kept = Object.entries(headers).filter(([name]) => !OF_THE_WHOLE.has(name))
  const sent = { ...Object.fromEntries(kept), ...(key !== undefined && { [ANSWERS_KEY_HEADER]: key }) }
  try {
    const response = await cluster.ask(node, {
      ...{ method: 'POST', path, headers: sent, client, body: JSON.stringify({ answers }) },
    })
    if (!response.ok) return refused(answers, 'SG_ERR_STORE_UNAVAILABLE')
    return ((await response.json()) as { results: InboxAnswerResult[] }).results
  } catch (error) {
    return refused(answers, wasUnheard(error) ? 'SG_ERR_NODE_UNREACHABLE' : 'SG_ERR_NODE_LOST')
  }
}

function refused(answers: Answers, why: ErrorCode): InboxAnswerResult[] {
  const { code, message: detail } = new GatewayError(why)
  return answers.map(({ sessionId, requestId }) => ({ sessionId, requestId, resolved: false, code, detail }))
}
