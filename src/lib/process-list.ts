import { readdir, readFile, readlink } from 'node:fs/promises'

/** One process of this machine, as /proc tells. Elsewhere than on Linux there is no list, and what needs one does without. */
export interface ProcessEntry {
  pid: number
  parent: number
  group: number
  /** Ticks since boot; with the pid it names one process for ever. */
  startTime: string
  isZombie: boolean
}

/** When this process was started, in epoch milliseconds: a file, or a lock, that is older is not its own. */
export const processStartedAt = (): number => Date.now() - process.uptime() * 1000

export async function listProcesses(): Promise<ProcessEntry[]> {
  const names = await readdir('/proc').catch(() => [])
  const entries = await Promise.all(names.filter((name) => /^\d+$/.test(name)).map((name) => readProcess(Number(name))))
  return entries.filter((entry) => entry !== undefined)
}

export async function readProcess(pid: number): Promise<ProcessEntry | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  if (stat === undefined) return undefined
  // The name in the second field may hold spaces and parentheses; what follows its last one does not.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return {
    pid,
    parent: Number(fields[1]),
    group: Number(fields[2]),
    startTime: fields[19]!,
    isZombie: fields[0] === 'Z' || fields[0] === 'X',
  }
}

/** The environment a process was started with; empty when it may not be read. */
export async function readEnvironment(pid: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '')
  return text.split('\0')
}

/** Process ids mean something only inside their namespace. */
export const pidNamespace = (): Promise<string> => readlink('/proc/self/ns/pid').catch(() => '')
