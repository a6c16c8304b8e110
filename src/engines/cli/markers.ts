import { listProcesses, type ProcessEntry, pidNamespace, readEnvironment, readProcess } from '../../lib/process-list.js'
import { tried } from '../../lib/tried.js'

/** Names the gateway process that started an agent. Whatever the agent starts inherits it, in whatever group or session it hides. */
const OWNER_ENV = 'SESSION_GATEWAY_OWNER'
const SESSION_ENV = 'SESSION_GATEWAY_SESSION'
/** Names one process of an agent: what ends the rest of one that died must not find its successor in the same session. */
export const PROCESS_MARK = 'SESSION_GATEWAY_PROCESS'

let owner: Promise<string> | undefined

/** This process, by a name that no later one has: `pid:start time:pid namespace`. */
function ownerName(): Promise<string> {
  owner ??= (async () => {
    const [self, namespace] = await Promise.all([readProcess(process.pid), pidNamespace()])
    return `${process.pid}:${self?.startTime ?? Date.now()}:${namespace}`
  })()
  return owner
}

/**
 * What marks a process of an agent and all that it starts; each call makes a new mark.
 * @param sessionId empty: it is of no session
 */
export async function markerEnv(sessionId: string): Promise<Record<string, string>> {
  return { [OWNER_ENV]: await ownerName(), [SESSION_ENV]: sessionId, [PROCESS_MARK]: crypto.randomUUID() }
}

/** What all that this gateway starts has in its environment. */
export async function ownerMark(): Promise<string> {
  return `${OWNER_ENV}=${await ownerName()}`
}

/**
 * Ends what a process of an agent left behind in process groups of its own.
 * @param mark its `PROCESS_MARK`
 * @returns how many processes there were
 */
export async function endStragglers(mark: string): Promise<number> {
  const mine = [await ownerMark(), `${PROCESS_MARK}=${mark}`]
  return endWhere(async ({ pid }) => {
    const environment = await readEnvironment(pid)
    return mine.every((line) => environment.includes(line))
  })
}

/**
 * Ends what a gateway that died left behind: called at boot, before anything is started. Other gateways' agents are left alone, as
 * are those of other containers.
 * @returns how many processes there were
 */
export async function endOrphans(): Promise<number> {
  const namespace = await pidNamespace()
  const prefix = `${OWNER_ENV}=`
  return endWhere(async ({ pid }) => {
    const line = (await readEnvironment(pid)).find((entry) => entry.startsWith(prefix))
    if (!line) return false
    const [ownerPid, startTime, ...rest] = line.slice(prefix.length).split(':')
    if (rest.join(':') !== namespace) return false
    const living = await readProcess(Number(ownerPid))
    return living === undefined || living.isZombie || living.startTime !== startTime
  })
}

/** Ends what matches, with all that this started and what is in its process groups. */
async function endWhere(matches: (entry: ProcessEntry) => Promise<boolean>): Promise<number> {
  const all = await listProcesses()
  // A gateway that an agent started carries that agent's marker itself.
  const spared = ancestors(all)
  const matching = await Promise.all(
    all.map(async (entry) => !spared.has(entry.pid) && !entry.isZombie && (await matches(entry))),
  )
  const meant = new Set(all.filter((_entry, n) => matching[n]).map(({ pid }) => pid))
  for (let before = -1; before !== meant.size; ) {
    before = meant.size
    for (const { pid, parent, group } of all)
      if (!spared.has(pid) && (meant.has(parent) || meant.has(group))) meant.add(pid)
  }
  return all.filter(({ pid, isZombie }) => meant.has(pid) && !isZombie && tried(() => process.kill(pid, 'SIGKILL')))
    .length
}

function ancestors(all: readonly ProcessEntry[]): Set<number> {
  const parents = new Map(all.map(({ pid, parent }) => [pid, parent]))
  const line = new Set<number>()
  for (let pid: number | undefined = process.pid; pid && !line.has(pid); pid = parents.get(pid)) line.add(pid)
  return line
}
