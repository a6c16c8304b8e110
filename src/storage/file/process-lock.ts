import { randomBytes } from 'node:crypto'
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { KeyedLock } from '../../lib/keyed-lock.js'
import { processStartedAt, readProcess } from '../../lib/process-list.js'
import { tried } from '../../lib/tried.js'
import { unless } from './unless.js'

/** Who holds a lock, as the lock file says it. */
interface LockHolder {
  pid: number
  host: string
  /** Epoch milliseconds at which the process started. */
  startedAt: number
  /** The boot and the tick at which the kernel started the process: what a reused pid does not share. Linux only. */
  birth?: string
}

/** A lock as this process holds it. */
export interface ProcessLock {
  /** @throws LockLostError while it is not there any more as this process wrote it: once it was removed another one can take it */
  assertHeld(): Promise<void>
  release(): Promise<void>
}

/** Another process holds the lock; `message` says which, and what to do when it does not. */
export class LockHeldError extends Error {
  override readonly name = 'LockHeldError'
}

/** The lock was removed while it was held; `message` says what to do. */
class LockLostError extends Error {
  override readonly name = 'LockLostError'
}

const MAX_TRIES = 20

/** Locks of this process, by path: whoever asks again shares, and the last one to release gives it up. */
const held = new Map<string, { users: number; content: string }>()
const turns = new KeyedLock()

/**
 * Takes a lock for this process. A lock whose process is gone is taken over; one of another host never is, for nobody here can tell.
 * @param path of the lock file, absolute and without links, in a directory that exists
 * @throws LockHeldError
 */
export async function acquireProcessLock(path: string): Promise<ProcessLock> {
  const lock = await turns.run(path, async () => {
    const lock = held.get(path) ?? { users: 0, content: await take(path) }
    lock.users += 1
    held.set(path, lock)
    return lock
  })
  let released: Promise<void> | undefined
  return {
    async assertHeld() {
      // it comes back only with all that is beside it, as a disk does that is mounted again
      if ((await textOf(path)) !== lock.content)
        throw new LockLostError(
          `${path} was removed while it was held, so that another process could take over. This one writes nothing any more; end it, or start it again once the other has ended.`,
        )
    },
    release() {
      released ??= turns.run(path, async () => {
        lock.users -= 1
        if (lock.users > 0) return
        held.delete(path)
        // Somebody may have removed ours by hand, and another process taken its place.
        if ((await textOf(path)) === lock.content) await rm(path, { force: true })
      })
      return released
    },
  }
}

async function take(path: string): Promise<string> {
  const mine: LockHolder = {
    pid: process.pid,
    host: hostname(),
    startedAt: Math.round(processStartedAt()),
    ...(await birthOf(process.pid).then((birth) => birth !== undefined && { birth })),
  }
  const draft = `${path}.${process.pid}-${randomBytes(6).toString('hex')}`
  const content = JSON.stringify(mine)
  try {
    await writeFile(draft, content, { mode: 0o600, flag: 'wx' })
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      // Linked into place, so that nobody ever reads a lock that does not say yet whose it is.
      if (await linked(draft, path)) return content
      await assertAbandoned(path)
      await discard(path, draft)
    }
    throw new LockHeldError(`${path} changes hands too quickly; another process is starting on the same files.`)
  } finally {
    await rm(draft, { force: true })
  }
}

/** @returns false: there is something already */
const linked = (from: string, to: string): Promise<boolean> => link(from, to).then(() => true, unless('EEXIST', false))

async function assertAbandoned(path: string): Promise<void> {
  const text = await textOf(path)
  if (text === undefined) return
  const holder = parseHolder(text)
  if (!holder)
    throw new LockHeldError(
      `${path} is no lock file. Remove it once you are sure that no other process uses these files.`,
    )
  if (holder.host === hostname() && !(await isRunning(holder))) return
  if (holder.pid === process.pid && holder.host === hostname())
    throw new LockHeldError(
      `In use by this process, ${process.pid}: by another thread, or another copy of the package. Close that gateway first; one whose thread ended without \`close()\` has it until the process ends, or ${path} is removed.`,
    )
  const since = new Date(holder.startedAt).toISOString()
  throw new LockHeldError(
    `In use by process ${holder.pid} on host ${holder.host}, started at ${since}. Stop it first; if it is gone for good, remove ${path}.`,
  )
}

/** Removes an abandoned lock, unless another process was quicker and the lock at this path is a new one by now. */
async function discard(path: string, draft: string): Promise<void> {
  const aside = `${draft}.stale`
  if (!(await rename(path, aside).then(() => true, unless('ENOENT', false)))) return
  // Put back, it is looked at again.
  await assertAbandoned(aside).catch(() => linked(aside, path))
  await rm(aside, { force: true })
}

const textOf = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(unless('ENOENT', undefined))

function parseHolder(text: string): LockHolder | undefined {
  const { pid, host, startedAt, birth } = (tried(() => JSON.parse(text)) ?? {}) as Partial<LockHolder>
  if (!Number.isSafeInteger(pid) || pid! <= 0 || typeof host !== 'string') return undefined
  if (!Number.isFinite(startedAt) || Math.abs(startedAt!) > 8.64e15) return undefined
  return { pid: pid!, host, startedAt: startedAt!, ...(typeof birth === 'string' && { birth }) }
}

async function isRunning({ pid, birth }: LockHolder): Promise<boolean> {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  const now = await birthOf(pid)
  if (now === DEAD) return false
  return birth === undefined || now === undefined || birth === now
}

/** Killed, and not yet taken off the list by its parent: it does nothing any more. */
const DEAD = 'dead'

async function birthOf(pid: number): Promise<string | undefined> {
  const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(() => undefined)
  const found = await readProcess(pid)
  if (boot === undefined || !found) return undefined
  return found.isZombie ? DEAD : `${boot.trim()}/${found.startTime}`
}
