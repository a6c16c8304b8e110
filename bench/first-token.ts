import { type ClaudeWorld, isClaudeInstalled, openClaudeWorld } from './lib/claude-world.js'
import { format, interleave, line, MB, median, verdict } from './lib/figures.js'
import { RawHttp } from './lib/raw-http.js'
import { RawSocket } from './lib/raw-socket.js'
import { ServerProcess } from './lib/server-process.js'

const ROUNDS = 20
const TARGET = 1.1
/** Open at the same time, each after its first answer. */
const SESSIONS = 8
const MEMORY_ROUNDS = 3
const TARGET_MB = 5
const PROMPT = 'Say something.'

/** The real claude, from the creation of a session to its first token, and what the session costs the process that drives it. */
export async function firstToken(): Promise<void> {
  if (!isClaudeInstalled()) {
    console.log('first-token: left out, claude is not installed: node test/agents/install.mjs claude')
    return
  }
  const { world, close } = await openClaudeWorld()
  try {
    await time(world)
    await memory(world)
  } finally {
    close()
  }
}

async function time(world: ClaudeWorld): Promise<void> {
  const [ours, direct] = await Promise.all([ThroughGateway.open(world), Direct.open(world)])
  const once = (driver: Driver) => async () => {
    const start = performance.now()
    const id = await driver.begin()
    const took = performance.now() - start
    await driver.finish(id)
    return took
  }
  const paired = await interleave(ROUNDS, once(ours), once(direct))
  console.log(line('a session created, to the first token of claude', paired, 'ms', TARGET))
  await Promise.all([ours.close(), direct.close()])
}

async function memory(world: ClaudeWorld): Promise<void> {
  const ours: PerSession[] = []
  const direct: PerSession[] = []
  for (let round = 0; round < MEMORY_ROUNDS; round++) {
    ours.push(await bytesPerSession(await ThroughGateway.open(world)))
    direct.push(await bytesPerSession(await Direct.open(world)))
  }
  const mb = (of: PerSession[], what: keyof PerSession) => median(of.map((one) => one[what])) / MB
  const more = mb(ours, 'rss') - mb(direct, 'rss')
  const figures = (of: PerSession[]) => `${format(mb(of, 'rss'))} MB (heap and buffers ${format(mb(of, 'used'))} MB)`
  console.log(
    `RSS of a session of claude in the process that drives it: ${figures(ours)}, baseline ${figures(direct)}; ` +
      `${format(more)} MB on top${verdict(more, TARGET_MB, 'MB')}`,
  )
}

interface PerSession {
  rss: number
  used: number
}

async function bytesPerSession(driver: Driver): Promise<PerSession> {
  await driver.finish(await driver.begin())
  const before = await driver.server.memoryInUse()
  const ids: string[] = []
  for (let n = 0; n < SESSIONS; n++) ids.push(await driver.begin())
  const after = await driver.server.memoryInUse()
  for (const id of ids) await driver.finish(id)
  await driver.close()
  const used = (of: typeof after) => of.heapUsed + of.external
  return { rss: (after.rss - before.rss) / SESSIONS, used: (used(after) - used(before)) / SESSIONS }
}

function untilToken() {
  let resolve = () => {}
  let reject = (_error: Error) => {}
  const promise = new Promise<void>((done, failed) => {
    resolve = done
    reject = failed
  })
  return { promise, resolve, reject }
}

interface Driver {
  readonly server: ServerProcess
  /** Resolves with the first token. */
  begin(): Promise<string>
  finish(id: string): Promise<void>
  close(): Promise<void>
}

class ThroughGateway implements Driver {
  private constructor(
    readonly server: ServerProcess,
    private readonly url: string,
    private readonly http: RawHttp,
    private readonly cwd: string,
  ) {}

  static async open(world: ClaudeWorld): Promise<ThroughGateway> {
    const server = await ServerProcess.start('servers/claude-gateway.js', START(world))
    const url = await server.call<string>('url')
    return new ThroughGateway(server, url, await RawHttp.open(url), world.cwd)
  }

  async begin(): Promise<string> {
    const { status, body } = await this.http.request(
      'POST',
      '/v1/sessions',
      JSON.stringify({ cwd: this.cwd, prompt: PROMPT }),
    )
    if (status !== 201) throw new Error(`create answered ${status}: ${body}`)
    const { id } = JSON.parse(body) as { id: string }
    const { promise, resolve, reject } = untilToken()
    const socket = await RawSocket.open(`${this.url}/v1/sessions/${id}/ws`, {
      onText: (text) => {
        if (text.includes('"stream_delta"')) resolve()
        if (text.includes('"session_error"')) reject(new Error(text.toString()))
      },
    })
    await promise
    socket.drop()
    return id
  }

  async finish(id: string): Promise<void> {
    await this.http.request('DELETE', `/v1/sessions/${id}`)
  }

  async close(): Promise<void> {
    this.http.close()
    await this.server.stop()
  }
}

class Direct implements Driver {
  #begun = 0

  private constructor(readonly server: ServerProcess) {}

  static async open(world: ClaudeWorld): Promise<Direct> {
    return new Direct(await ServerProcess.start('servers/claude-direct.js', START(world)))
  }

  async begin(): Promise<string> {
    const id = String(++this.#begun)
    await this.server.call('begin', { id, prompt: PROMPT })
    return id
  }

  finish(id: string): Promise<void> {
    return this.server.call('finish', id)
  }

  close(): Promise<void> {
    return this.server.stop()
  }
}

const START = (world: ClaudeWorld) => ({ argv: [JSON.stringify(world)], exposeGc: true })
