import type { Answer, PermissionRequest } from '../../client/index.js'
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
  const [only] = found
  if (!only || found.length > 1)
    throw new CommandFailure(
      only
        ? `${found.length} requests begin with ${prefix}: write more of the id.`
        : `Nothing that waits for an approval begins with ${prefix}. See session-gateway approvals ls.`,
      only ? EXIT.usage : EXIT.failed,
    )
  await gateway.sessions.resolvePermission(only.session.id, only.request.id, answerTo(only.request))
  note(safe(`Answered ${only.request.toolName} of “${only.session.title}”.`))
}
