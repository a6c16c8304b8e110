import { existsSync, lstatSync, realpathSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { SessionInfo, SessionStatus } from '../../client/index.js'
import { makeDirectorySync } from '../../src/lib/make-directory.js'
import { isWithin } from '../../src/lib/paths-within-roots.js'
import { type ConnectionOptions, connect, connectionOf } from '../terminal/connection.js'
import { Conversation } from '../terminal/conversation.js'
import { CommandFailure, toEach } from '../terminal/exit.js'
import { sessionId } from '../terminal/find.js'
import { isInteractive } from '../terminal/keys.js'
import {
  ago,
  type Column,
  count,
  money,
  note,
  type OutputOptions,
  print,
  printList,
  printOne,
  safe,
  when,
} from '../terminal/output.js'
import { promptOf } from './run.js'

type Options = ConnectionOptions & OutputOptions

const NO_FILES = 'This session has no files.'

const COLUMNS: Column<SessionInfo>[] = [
  { title: 'id', of: ({ id }) => id.slice(0, 8), isWhole: true },
  { title: 'status', of: ({ status }) => status },
  { title: 'profile', of: ({ profile }) => profile },
  { title: 'active', of: ({ lastActivityAt }) => ago(lastActivityAt) },
  { title: 'title', of: ({ title }) => title, isWide: true },
]

export async function list(
  options: Options & { status?: SessionStatus; profile?: string; limit?: number },
): Promise<void> {
  const { status, profile, limit } = options
  const sessions: SessionInfo[] = []
  for await (const session of connect(options).sessions.list({
    ...(status && { status }),
    ...(profile !== undefined && { profile }),
  })) {
    if (sessions.length === limit) break
    sessions.push(session)
  }
  const none =
    status || profile !== undefined
      ? 'None of the sessions is like that. See all of them: session-gateway sessions ls'
      : 'There are no sessions. Start one: session-gateway run "…"'
  printList(sessions, COLUMNS, options, none)
}

export async function show(prefix: string, options: Options): Promise<void> {
  const gateway = connect(options)
  const session = await gateway.sessions.get(await sessionId(gateway, prefix))
  printOne(session, fieldsOf(session), options)
}

const fieldsOf = (session: SessionInfo): [string, unknown][] => [
  ['id', session.id],
  ['title', session.title],
  ['status', session.statusDetail ? `${session.status}: ${session.statusDetail}` : session.status],
  ['profile', session.profile],
  ['agent', session.agent ?? session.engine],
  ['model', session.model],
  ['mode', session.permissionMode],
  ['directory', session.cwd],
  ['created', when(session.createdAt)],
  ['active', ago(session.lastActivityAt)],
  ['turns', session.numTurns],
  ['tokens', count(session.usage.inputTokens + session.usage.outputTokens)],
  ['cost', money(session.cost)],
  ['waits for', waitsFor(session)],
  ['job', session.jobId],
]

function waitsFor({ pendingPermissions, parked }: SessionInfo): string {
  const executions = parked?.executions.map(({ executionId, toolName }) => `${toolName} (${executionId})`) ?? []
  const approvals =
    pendingPermissions > 0 ? [pendingPermissions === 1 ? '1 approval' : `${pendingPermissions} approvals`] : []
  return [...approvals, ...executions].join(', ')
}

export async function attach(prefix: string, options: Options & { json?: boolean; from?: number }): Promise<void> {
  const gateway = connect(options)
  const id = await sessionId(gateway, prefix)
  // a gateway that is not there is waited for only where it was there before
  await gateway.sessions.get(id)
  const takesLines = isInteractive() && !options.json
  if (takesLines) note('Type to talk. Ctrl-C interrupts, twice leaves; Ctrl-D leaves.')
  const outcome = await new Conversation(gateway.session(id), {
    json: options.json === true,
    afterSeq: options.from ?? 0,
    unattended: 'leave',
    showsPrompts: true,
    takesLines,
  }).run()
  // how an earlier turn ended is not how attaching to it did
  if (!takesLines) process.exitCode = outcome.exitCode
}

export async function send(prefix: string, words: string[], options: Options & { interrupt?: boolean }): Promise<void> {
  const gateway = connect(options)
  const id = await sessionId(gateway, prefix)
  await gateway.session(id).send(await promptOf(words), { ...(options.interrupt && { whenBusy: 'interrupt' }) })
  note(`Sent. To see what comes: session-gateway sessions attach ${id.slice(0, 8)}`)
}

export async function rename(prefix: string, words: string[], options: Options): Promise<void> {
  const gateway = connect(options)
  const session = await gateway.sessions.rename(await sessionId(gateway, prefix), words.join(' ') || null)
  note(safe(`It is now called “${session.title}”.`))
}

export async function remove(prefixes: string[], options: Options): Promise<void> {
  const gateway = connect(options)
  await toEach(prefixes, async (prefix) => {
    const { id } = await gateway.sessions.remove(await sessionId(gateway, prefix))
    note(`Removed ${id}.`)
  })
}

export async function files(prefix: string, options: Options): Promise<void> {
  const gateway = connect(options)
  const id = await sessionId(gateway, prefix)
  const found = await gateway.sessions.files(id)
  printList(
    found,
    [
      { title: 'path', of: ({ path }) => path, isWide: true },
      { title: 'bytes', of: ({ bytes }) => count(bytes) },
      { title: 'modified', of: ({ modifiedAt }) => ago(modifiedAt) },
    ],
    options,
    NO_FILES,
  )
}

/** Fetches files into a directory; nothing is written outside of it, and nothing over what is there. */
export async function pull(
  prefix: string,
  paths: string[],
  options: Options & { into?: string; force?: boolean },
): Promise<void> {
  const gateway = connect(options)
  const id = await sessionId(gateway, prefix)
  const wanted = paths.length > 0 ? paths : (await gateway.sessions.files(id)).map(({ path }) => path)
  if (wanted.length === 0) return note(NO_FILES)
  const folder = resolve(options.into ?? '.')
  const files = wanted.map((path) => ({ path, target: targetOf(folder, path, options.force === true) }))
  for (const { path, target } of files) {
    const content = await gateway.sessions.file(id, path)
    makeDirectorySync(dirname(target), 0o777)
    writeFileSync(target, Buffer.from(await content.arrayBuffer()))
    print(safe(target))
  }
}

/** Where a file goes. @throws CommandFailure when that is outside of the folder, by its name or by a link, or something is there */
function targetOf(folder: string, path: string, force: boolean): string {
  const target = join(folder, path)
  const there = lstatSync(target, { throwIfNoEntry: false })
  const isLink = there?.isSymbolicLink() === true
  if (isLink || !isWithin(folder, target) || !isWithin(realPlace(folder), realPlace(dirname(target))))
    throw new CommandFailure(`${path} would be written outside of ${folder}. Nothing was.`)
  if (there && !force)
    throw new CommandFailure(`${target} exists already. Write over it with --force, or elsewhere with --into.`)
  return target
}

/** Where a path leads; what does not exist yet will lie in what does. */
const realPlace = (path: string): string =>
  existsSync(path) ? realpathSync(path) : join(realPlace(dirname(path)), basename(path))

export async function open(prefix: string, options: Options): Promise<void> {
  const gateway = connect(options)
  print(`${connectionOf(options).url}/sessions/${await sessionId(gateway, prefix)}`)
}
