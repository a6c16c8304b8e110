import { readFileSync } from 'node:fs'
import { tried } from './tried.js'

/** How many files and connections a process may have open. */
export interface DescriptorLimit {
  /** What holds; Node raises it to `hard` when it starts. */
  soft: number
  /** What it could be raised to; Infinity: without limit. */
  hard: number
}

/** Below it many clients, agents and webhooks at once do not fit. */
const LOW = 4096

/** This process's own; undefined where there is no `/proc`. */
export function descriptorLimit(file = '/proc/self/limits'): DescriptorLimit | undefined {
  const text = tried(() => readFileSync(file, 'latin1'))
  const [, soft, hard] = /^Max open files +(\w+) +(\w+)/m.exec(text ?? '') ?? []
  if (soft === undefined || hard === undefined) return undefined
  const count = (word: string) => (word === 'unlimited' ? Number.POSITIVE_INFINITY : Number(word))
  return { soft: count(soft), hard: count(hard) }
}

/** Below it the modules of a start do not fit, which are opened some two hundred at a time. */
const BARE = 256

/** The loader takes a package whose description cannot be opened for one that is not there. */
export function isLackOfDescriptors(error: Error, limit: DescriptorLimit | undefined): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'EMFILE' || (code === 'ERR_MODULE_NOT_FOUND' && limit !== undefined && limit.soft < BARE)
}

const HOW = 'LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536 before the start'

/** What to do about a limit that is low; undefined when it is not. */
export const descriptorRemedy = ({ soft }: DescriptorLimit): string | undefined =>
  soft < LOW ? `raise it for many clients: ${HOW}` : undefined

/** Of a process that has not even the descriptors to load what it consists of. */
export const NO_DESCRIPTORS = `The limit of file descriptors is too low to start with. Raise it: ${HOW}.`
