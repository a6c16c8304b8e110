/** What the process beside the gateway is told at its start. */
export interface LeashTask {
  /** The gateway's process. */
  gateway: number
  /** What all that it starts has in its environment. */
  ownerMark: string
  /** What comes before the name of one process of an agent there. */
  processMark: string
  /** How often it looks whether the gateway is stopped, milliseconds, while there are agents. */
  everyMs: number
  /** Takes over from one that died, of which nobody knows what it had stopped. */
  isSuccessor: boolean
  /** Where the kernel lists the processes. */
  list: string
}

/**
 * What runs in the process that keeps this gateway's agents on their leash: a program of its own, that sees nothing of this module.
 *
 * It does three things. It looks through the processes of the machine when it is asked, once for all who asked meanwhile, so that the
 * gateway needs not. While the gateway is stopped, which no slowness of its own looks like, and while it was told of a lease that is over,
 * it keeps everything stopped that bears the gateway's mark, in whatever process group or session it hides, and all that this started; and
 * the same of an agent that is paused. When its input ends, because the gateway is gone, however it went, it ends all of that; then it ends
 * itself.
 *
 * Without a list of processes it knows the groups of the agents that it was told of, and ends those.
 */
export function leashProgram({ gateway, ownerMark, processMark, everyMs, isSuccessor, list }: LeashTask): void {
  const { readdirSync, readFileSync } = process.getBuiltinModule('node:fs')
  const { createInterface } = process.getBuiltinModule('node:readline')

  interface Entry {
    pid: number
    parent: number
    group: number
    startTime: number
    isZombie: boolean
    isStopped: boolean
    /** By a debugger, which stops and continues it at every call. */
    isTraced: boolean
  }
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  const look = (pid: number): Entry | undefined => {
    const stat = read(`${list}/${pid}/stat`)
    // The name in the second field may hold spaces and parentheses; what follows its last one does not.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const state = fields[0]!
    if (!stat) return undefined
    return {
      ...{ pid, parent: Number(fields[1]), group: Number(fields[2]), startTime: Number(fields[19]) },
      ...{ isZombie: 'ZX'.includes(state), isStopped: state === 'T', isTraced: state === 't' },
    }
  }
  const scan = (): Entry[] => {
    let names: string[] = []
    try {
      names = readdirSync(list)
    } catch {}
    return names.flatMap((name) =>
      /^\d+$/.test(name) && Number(name) !== process.pid ? (look(Number(name)) ?? []) : [],
    )
  }
  const bears = ({ pid }: Entry, marks: string[]) => {
    const environment = read(`${list}/${pid}/environ`).split('\0')
    return marks.every((mark) => environment.includes(mark))
  }
  /** Those that show no environment for longer than a process does that begins another program: by pid, with when they began. */
  const bare = new Map<number, number>()
  const isBeginning = ({ pid, startTime, isZombie }: Entry): boolean => {
    if (isZombie || bare.get(pid) === startTime) return false
    try {
      return readFileSync(`${list}/${pid}/environ`).length === 0
    } catch {
      return false
    }
  }
  /** What is meant and all that it started, the older first: no process sees one stop that it waits for. */
  const withStarted = (all: Entry[], isMeant: (entry: Entry) => boolean): Entry[] => {
    const found = new Set(all.filter(isMeant).map(({ pid }) => pid))
    for (let before = -1; before !== found.size; ) {
      before = found.size
      for (const { pid, parent } of all) if (found.has(parent)) found.add(pid)
    }
    return all.filter(({ pid, isZombie }) => found.has(pid) && !isZombie).sort((a, b) => a.startTime - b.startTime)
  }
  const signal = (pid: number, name: NodeJS.Signals): boolean => {
    try {
      return process.kill(pid, name)
    } catch {
      return false
    }
  }
  const kill = (entries: Entry[]): number => entries.filter(({ pid }) => signal(pid, 'SIGKILL')).length

  /** The groups of agents that run, with when the agent began. */
  const groups = new Map<number, number | undefined>()
  /**
   * Also an agent whose environment nobody may read: programs that guard keys hide it.
   * @param isOver the gateway is gone: nobody tells any more which agents have ended
   */
  const ofGateway = (all: Entry[], isOver = false): Entry[] => {
    const startTimes = new Map(all.map(({ pid, startTime }) => [pid, startTime]))
    const led = new Set<number>()
    for (const [group, startTime] of groups) {
      // While its leader is in the list the number of a group is no other's. One that is missing went just now: of others we are told.
      if (startTimes.has(group) ? startTimes.get(group) === startTime : isOver) led.add(group)
    }
    return withStarted(all, (entry) => led.has(entry.pid) || led.has(entry.group) || bears(entry, [ownerMark]))
  }
  /** Agents that are to be stopped, by their group, with their mark. */
  const paused = new Map<number, string | undefined>()
  /** When all of them are, by `performance.now()`; absent: only when the gateway is. */
  let leaseUntil: number | undefined
  let leaseTimer: NodeJS.Timeout | undefined
  const isMeantPaused = (entry: Entry) => {
    if (paused.has(entry.pid) && groups.get(entry.pid) === entry.startTime) return true
    const environment = read(`${list}/${entry.pid}/environ`).split('\0')
    if (!environment.includes(ownerMark)) return false
    return [...paused.values()].some((mark) => mark !== undefined && environment.includes(processMark + mark))
  }
  /** What was stopped here, by pid, with when it began. */
  const stopped = new Map<number, number>()
  const stop = (meant: (all: Entry[]) => Entry[]): Entry[] => {
    let found: Entry[] = []
    // looked for again: what is being started while it is looked for is not in the list
    for (let rounds = 10; rounds > 0; rounds--) {
      found = meant(scan())
      const running = found.filter(({ isStopped, isTraced }) => !isStopped && !isTraced)
      if (running.length === 0) break
      for (const { pid, startTime } of running) if (signal(pid, 'SIGSTOP')) stopped.set(pid, startTime)
    }
    return found
  }
  const resumeBut = (kept: Entry[]) => {
    const stays = new Map(kept.map(({ pid, startTime }) => [pid, startTime]))
    for (const [pid, startTime] of [...stopped].reverse()) {
      if (stays.get(pid) === startTime) continue
      if (look(pid)?.startTime === startTime) signal(pid, 'SIGCONT')
      stopped.delete(pid)
    }
  }
  const mayWork = () => !look(gateway)?.isStopped && (leaseUntil === undefined || performance.now() < leaseUntil)
  let timer: NodeJS.Timeout | undefined
  const watch = () => {
    if (!mayWork()) stop(ofGateway)
    else if (paused.size > 0) resumeBut(stop((all) => withStarted(all, isMeantPaused)))
    else if (stopped.size > 0) resumeBut([])
    const isNeeded = groups.size + stopped.size > 0
    if (isNeeded) timer ??= setInterval(watch, everyMs)
    else {
      clearInterval(timer)
      timer = undefined
    }
  }
  let looksSoon = false
  /** Once for all that is told at a time. */
  const watchSoon = () => {
    if (looksSoon) return
    looksSoon = true
    setImmediate(() => {
      looksSoon = false
      watch()
    })
  }
  const renew = (leftMs: number | null) => {
    clearTimeout(leaseTimer)
    leaseUntil = leftMs === null ? undefined : performance.now() + leftMs
    // at once, and not when it looks the next time
    if (leftMs !== null) leaseTimer = setTimeout(watch, Math.max(leftMs, 0) + 1)
  }
  const takeOver = (entries: Entry[]) => {
    for (const { pid, startTime, isStopped } of entries) if (isStopped) stopped.set(pid, startTime)
  }
  const begin = (group: number) => {
    const agent = look(group)
    groups.set(group, agent?.startTime)
    if (isSuccessor && agent) takeOver([agent])
  }
  if (isSuccessor) takeOver(ofGateway(scan()))

  let asked: { id: number; group?: number; mark?: string }[] = []
  const answer = (rounds = 20) => {
    const all = scan()
    const beginning = all.filter(isBeginning)
    if (beginning.length > 0 && rounds > 0) return void setTimeout(answer, 10, rounds - 1)
    const there = new Set(all.map(({ pid }) => pid))
    for (const pid of bare.keys()) if (!there.has(pid)) bare.delete(pid)
    for (const { pid, startTime } of beginning) bare.set(pid, startTime)
    const now = asked
    asked = []
    for (const { id, group, mark } of now) {
      const result =
        mark === undefined
          ? all.some((entry) => entry.group === group && !entry.isZombie)
          : kill(withStarted(all, (entry) => bears(entry, [ownerMark, processMark + mark])))
      process.stdout.write(`${JSON.stringify({ id, result })}\n`)
    }
  }
  // A gateway that is gone reads no answers.
  process.stdout.on('error', () => {})
  // Whoever ends the gateway by its terminal means its agents, which are ended in their turn.
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => {})
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    const told = JSON.parse(line)
    if (told.began !== undefined) begin(told.began)
    if (told.ended !== undefined) groups.delete(told.ended)
    if (told.pause !== undefined) paused.set(told.pause, told.mark)
    if (told.resume !== undefined) paused.delete(told.resume)
    if (told.lease !== undefined) renew(told.lease)
    if (told.id === undefined) watchSoon()
    else if (asked.push(told) === 1) setImmediate(answer)
  })
  lines.on('close', () => {
    clearInterval(timer)
    clearTimeout(leaseTimer)
    const all = scan()
    if (all.length === 0) for (const group of groups.keys()) signal(-group, 'SIGKILL')
    const endAll = (found: Entry[], rounds: number) => {
      if (kill(ofGateway(found, true)) > 0 && rounds > 1) setTimeout(() => endAll(scan(), rounds - 1), 50)
      else process.exit()
    }
    endAll(all, 100)
  })
}
