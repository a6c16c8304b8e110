/**
 * What runs in the process that keeps this gateway's agents on their leash: a program of its own, that sees nothing of this module.
 *
 * It does two things. It looks through the processes of the machine when it is asked, once for all who asked meanwhile, so that the
 * gateway needs not. And when its input ends, because the gateway is gone, however it went, it ends everything that bears the gateway's
 * mark, in whatever process group or session it hides, and all that this started; then it ends itself.
 */
export function leashProgram(ownerMark: string, processMark: string): void {
  const { readdirSync, readFileSync } = process.getBuiltinModule('node:fs')
  const { createInterface } = process.getBuiltinModule('node:readline')

  interface Entry {
    pid: number
    parent: number
    group: number
    isZombie: boolean
  }
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  const scan = (): Entry[] => {
    let names: string[] = []
    try {
      names = readdirSync('/proc')
    } catch {}
    return names
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => {
        const stat = read(`/proc/${name}/stat`)
        // The name in the second field may hold spaces and parentheses; what follows its last one does not.
        const [state, parent, group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        if (!stat || Number(name) === process.pid) return []
        const isZombie = state === 'Z' || state === 'X'
        return [{ pid: Number(name), parent: Number(parent), group: Number(group), isZombie }]
      })
  }
  const bears = ({ pid }: Entry, marks: string[]) => {
    const environment = read(`/proc/${pid}/environ`).split('\0')
    return marks.every((mark) => environment.includes(mark))
  }
  /** Ends what bears the marks, and all that it started. */
  const sweep = (all: Entry[], marks: string[]): number => {
    const doomed = new Set(all.filter((entry) => bears(entry, marks)).map(({ pid }) => pid))
    for (let before = -1; before !== doomed.size; ) {
      before = doomed.size
      for (const { pid, parent } of all) if (doomed.has(parent)) doomed.add(pid)
    }
    let ended = 0
    for (const { pid, isZombie } of all) {
      if (!doomed.has(pid) || isZombie) continue
      try {
        process.kill(pid, 'SIGKILL')
        ended++
      } catch {}
    }
    return ended
  }

  let asked: { id: number; group?: number; mark?: string }[] = []
  const answer = () => {
    const now = asked
    asked = []
    const all = scan()
    for (const { id, group, mark } of now) {
      const result =
        mark === undefined
          ? all.some((entry) => entry.group === group && !entry.isZombie)
          : sweep(all, [ownerMark, processMark + mark])
      process.stdout.write(`${JSON.stringify({ id, result })}\n`)
    }
  }
  // A gateway that is gone reads no answers.
  process.stdout.on('error', () => {})
  // Whoever ends the gateway by its terminal means its agents, which are ended in their turn.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  const lines = createInterface({ input: process.stdin })
  lines.on('line', (line) => {
    if (asked.push(JSON.parse(line)) === 1) setImmediate(answer)
  })
  lines.on('close', () => {
    const endAll = (rounds: number) => {
      // Looked for again until there is nothing: what is being started while it is looked for is not in the list.
      if (sweep(scan(), [ownerMark]) > 0 && rounds > 1) setTimeout(endAll, 50, rounds - 1)
      else process.exit()
    }
    endAll(100)
  })
}
