import { type Answer, type Client, GatewayError, type PermissionRequest, type SessionInfo } from '../../client/index.js'
import { whoWasFirst } from '../../src/notifications/answers/who-was-first.js'
import { questionsOf } from '../terminal/asks.js'
import { type ConnectionOptions, connect } from '../terminal/connection.js'
import { CommandFailure, EXIT } from '../terminal/exit.js'
import { assertNamed } from '../terminal/find.js'
import { note, type OutputOptions, printList, safe } from '../terminal/output.js'
import { inputSummary } from '../terminal/session-view.js'

type Options = ConnectionOptions & OutputOptions

export async function list(options: Options): Promise<void> {
  const pending = await connect(options).inbox.list().toArray()
  printList(
    pending,
    [
      { title: 'request', of: ({ request }) => request.id.slice(0, 8), isWhole: true },
      { title: 'session', of: ({ session }) => session.id.slice(0, 8), isWhole: true },
      { title: 'tool', of: ({ request }) => request.toolName },
      { title: 'what', of: ({ request }) => whatOf(request), isWide: true },
    ],
    options,
    'Nothing waits for an approval.',
  )
}

const whatOf = (request: PermissionRequest): string =>
  questionsOf(request)
    ?.map(({ question, options }) => `${question} (${options.map(({ label }) => label).join(' / ')})`)
    .join(' · ') ?? `${request.title ?? ''} ${inputSummary(request.input, 200)}`.trim()

export async function allow(prefix: string, options: Options & { answer?: string[] }): Promise<void> {
  await resolve(prefix, options, (request) => {
    const questions = questionsOf(request)
    const given = options.answer ?? []
    // whoever answers "No" has taken it for a question
    if (!questions && given.length > 0)
      throw new CommandFailure(
        `${safe(request.toolName)} asks no question: allow it without --answer, or deny it.`,
        EXIT.usage,
      )
    if (!questions) return 'allow'
    if (given.length !== questions.length)
      throw new CommandFailure(
        `It asks ${questions.length === 1 ? 'a question' : `${questions.length} questions`}; answer each in turn with --answer:\n${questions
          .map(({ question, options }) => `  ${question} ${options.map(({ label }) => label).join(' / ')}`)
          .join('\n')}`,
        EXIT.usage,
      )
    return { answers: Object.fromEntries(questions.map(({ question }, index) => [question, given[index]!])) }
  })
}

export async function deny(prefix: string, options: Options & { message?: string; stop?: boolean }): Promise<void> {
  const { message, stop } = options
  await resolve(prefix, options, () => ({
    behavior: 'deny',
    ...(message !== undefined && { message }),
    ...(stop && { interrupt: true }),
  }))
}

async function resolve(
  prefix: string,
  options: Options,
  answerTo: (request: PermissionRequest) => Answer,
): Promise<void> {
  assertNamed('request', prefix)
  const gateway = connect(options)
  const found = (await gateway.inbox.list().toArray()).filter(({ request }) => request.id.startsWith(prefix))
  if (found.length > 1)
    throw new CommandFailure(`${found.length} requests begin with ${prefix}: write more of the id.`, EXIT.usage)
  const [only] = found
  if (!only) {
    const asked = await askedBefore(gateway, prefix).catch(() => undefined)
    const late = asked && (await answeredBefore(gateway, asked))
    throw (
      late ??
      new CommandFailure(`Nothing that waits for an approval begins with ${prefix}. See session-gateway approvals ls.`)
    )
  }
  try {
    await gateway.sessions.resolvePermission(only.session.id, only.request.id, answerTo(only.request))
  } catch (error) {
    const isLate = error instanceof GatewayError && error.code === 'SG_ERR_PERMISSION_NOT_FOUND'
    throw (isLate && (await answeredBefore(gateway, only))) || error
  }
  note(safe(`Answered ${only.request.toolName} of “${only.session.title}”.`))
}

interface Asked {
  session: Pick<SessionInfo, 'id' | 'title'>
  request: Pick<PermissionRequest, 'id' | 'toolName'>
  seq: number
}

/** What was asked a while ago, by the beginning of its id; undefined where that is kept no more, or means several. */
async function askedBefore(gateway: Client, prefix: string): Promise<Asked | undefined> {
  const page = await gateway.notifications
    .list({ types: 'permission_requested' })
    .pages()
    [Symbol.asyncIterator]()
    .next()
  const told = page.value?.filter(({ request }) => request?.id.startsWith(prefix)) ?? []
  const [{ session, request, seq } = {}] = told
  return session && request && seq && told.length === 1 ? { session, request, seq } : undefined
}

/** Says who was first with an answer; undefined where the log does not tell. */
async function answeredBefore(gateway: Client, { session, request, seq }: Asked): Promise<CommandFailure | undefined> {
  try {
    for await (const event of gateway.sessions.events(session.id, { afterSeq: seq }))
      if (event.type === 'permission_resolved' && event.requestId === request.id)
        return new CommandFailure(
          `${request.toolName} of “${session.title}” does not wait any more. ${whoWasFirst(event)}`,
        )
  } catch {
    // its session is gone
  }
  return undefined
}
