import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import type { SessionCommand } from '../../schemas/commands.js'
import type { SessionEvent } from '../../schemas/events.js'
import type { SessionInfo } from '../../schemas/sessions.js'
import type { AgentGatewayOptions } from '../fixtures/agent-gateway.js'
import { processesOf } from '../fixtures/processes.js'
import { type AgentUnderTest, CLAUDE_SDK } from './installed.js'
import { script, startVendors, type Vendors } from './vendors.js'

const GATEWAY = fileURLToPath(new URL('../fixtures/agent-gateway.ts', import.meta.url))
/** Longer than any gateway lives that is cut off in it. */
const LONG = Array.from({ length: 2_000 }, (_, index) => `word${index}`).join(' ')
/** How often an engine comes and goes before what that leaves behind is counted. */
const RELEASES = 3

/** A place where an agent keeps its sessions and gateways, one after the other, keep theirs. */
async function build(t: Test, agent: AgentUnderTest, tools: string[]) {
  const vendors = await startVendors(t)
  const home = realpathSync(mkdtempSync(join(tmpdir(), `${agent.name}-durable-`)))
  const cwd = join(home, 'work')
  mkdirSync(cwd)
  for (const [path, text] of Object.entries(agent.files(vendors.url))) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  const options: AgentGatewayOptions = {
    path: join(home, 'gateway.db'),
    agent: agent.declaration,
    claudeSdk: CLAUDE_SDK,
    tools,
    env: { PATH: process.env.PATH!, HOME: home, ...agent.env(home, vendors.url) },
  }
  const start = (more: Partial<AgentGatewayOptions> = {}) => startGateway(t, cwd, { ...options, ...more })
  const forget = () => rmSync(join(home, agent.transcripts), { recursive: true })
  return { vendors, start, forget }
}

async function startGateway(t: Test, cwd: string, options: AgentGatewayOptions) {
  const child = fork(GATEWAY, [JSON.stringify(options)])
  const exited = once(child, 'exit')
  t.teardown(() => void child.kill('SIGKILL'))
  const [url] = (await once(child, 'message')) as [string]
  const pid = child.pid!
  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${url}/v1/sessions${path}`, {
      method,
      ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
    })
    // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely
    const json = (await response.json()) as any
    if (!response.ok) throw new Error(`${method} ${path} was answered with ${JSON.stringify(json)}`)
    return json
  }
  const info = (id: string): Promise<SessionInfo> => call('GET', `/${id}`)
  const events = async (id: string): Promise<SessionEvent[]> => (await call('GET', `/${id}/events`)).events
  const command = (id: string, body: SessionCommand) => call('POST', `/${id}/commands`, body)
  /** Takes a turn and waits for its end; nobody is attached meanwhile. */
  const turn = async (id: string, text: string) => {
    const before = ends(await events(id)).length
    await command(id, { type: 'user_message', text })
    return until(async () => ends(await events(id))[before])
  }
  return {
    create: async (body: object): Promise<string> => (await call('POST', '', { cwd, ...body })).id,
    ...{ info, events, command, turn },
    idle: (id: string) => until(async () => (await info(id)).status === 'idle'),
    /** Of the agents that it has started. */
    processes: (id?: string) => processesOf(id, pid),
    /** The session is idle, and its agent is gone. */
    released: (id: string) =>
      until(async () => (await info(id)).status === 'idle' && processesOf(id, pid).length === 0),
    /** How much the gateway holds open, apart from the processes of the machine, which it looks through after each release. */
    descriptors: () => descriptorsOf(pid).filter((target) => !/^\/proc(\/|$)/.test(target)).length,
    /** How many timers keep the gateway's process. */
    timers: async () => {
      child.send('timers')
      const [count] = (await once(child, 'message')) as [number]
      return count
    },
    close: async () => {
      child.send('close')
      await exited
    },
    kill: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
}

const descriptorsOf = (pid: number): string[] =>
  readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return readlinkSync(`/proc/${pid}/fd/${name}`)
    } catch {
      return []
    }
  })

/** Waits by looking now and then: somebody attached would keep the engine. */
async function until<T>(look: () => T | Promise<T>): Promise<NonNullable<T>> {
  for (;;) {
    const found = await look()
    if (found) return found
    await sleep(20)
  }
}

const ofType = <Type extends SessionEvent['type']>(events: readonly SessionEvent[], type: Type) =>
  events.filter((event): event is Extract<SessionEvent, { type: Type }> => event.type === type)
const ends = (events: readonly SessionEvent[]) => ofType(events, 'turn_completed')

/** What a session says of itself that goes on, whoever serves it. */
const settled = ({ id, status, sdkSessionId, numTurns, cost, usage, title, createdAt }: SessionInfo) => ({
  ...{ id, status, sdkSessionId, numTurns, cost, usage, title, createdAt },
})

/** The log goes on: nothing is told again, and no number is used twice. */
function checkLog(t: Test, after: SessionEvent[], before: SessionEvent[]): void {
  t.same(after.slice(0, before.length), before, 'the same log goes on')
  t.ok(
    after.every(({ seq }, at) => at === 0 || seq > after[at - 1]!.seq),
    'seq rises',
  )
  t.notOk(
    after.some((event) => 'replay' in event),
    'no history is told again',
  )
  t.strictSame(ofType(after, 'engine_event').filter(isLoss), [], 'nothing was lost')
}

/** Whether a model that was asked for something was told something else with it; agents ask for titles too, without the rest. */
const knows = ({ asked }: Vendors, prompt: string, also: string): boolean =>
  asked.some(({ body }) => body.includes(prompt) && body.includes(also))

/** That a session which cannot go on says so once, and what to do. */
async function checkGone(t: Test, gateway: Awaited<ReturnType<typeof startGateway>>, id: string): Promise<void> {
  const send = () => gateway.command(id, { type: 'user_message', text: 'hi' })
  await t.rejects(send(), /SG_ERR_AGENT_STATE_GONE/)
  t.match(await gateway.info(id), { status: 'failed', statusDetail: /Create a new session/ })
  await t.rejects(send(), /SG_ERR_SESSION_ENDED/)
  t.match(
    ofType(await gateway.events(id), 'session_error').map(({ code, message }) => ({ code, message })),
    [{ code: 'SG_ERR_AGENT_STATE_GONE', message: /Create a new session/ }],
  )
}

const isLoss = ({ payload }: { payload: unknown }) => (payload as { type?: string }).type === 'history_lost'

/**
 * That sessions of an agent outlive their engine and their gateway.
 * @param tools names of tools of the gateway's own that it is given
 */
export function showDurable(agent: AgentUnderTest, tools: string[] = []): void {
  const name = tools.length > 0 ? `${agent.name}, durable, with a tool declared` : `${agent.name}, durable`
  t.test(name, { skip: agent.missing ?? false }, async (t) => {
    t.test('closed in order: the session is there with its log, and goes on with all that was said', async (t) => {
      const { vendors, start } = await build(t, agent, tools)
      const first = await start()
      const id = await first.create({ prompt: script({ text: 'The answer was blue.' }) })
      const end = await until(async () => ends(await first.events(id))[0])
      t.match(end, { subtype: 'success' })
      await first.idle(id)
      const [before, was] = [await first.events(id), await first.info(id)]
      await first.close()
      t.strictSame(first.processes(), [])

      const second = await start()
      t.same(settled(await second.info(id)), settled(was))
      // the agent may have told of its context after the look, and before it was closed
      const after: { type: string }[] = await second.events(id)
      t.same(after.slice(0, before.length), before)
      t.same(
        after.slice(before.length).filter(({ type }) => type !== 'context_usage'),
        [],
      )
      t.strictSame(second.processes(), [], 'it needs no agent yet')
      const next = await second.turn(id, script({ text: 'Here again.' }))
      t.match(next, { subtype: 'success', result: /Here again/ })
      t.ok(knows(vendors, 'Here again', 'The answer was blue.'), 'the model sees what it said before')
      checkLog(t, await second.events(id), before)
      const now = await second.info(id)
      t.equal(now.sdkSessionId, was.sdkSessionId)
      t.ok(now.numTurns > was.numTurns && now.cost >= was.cost)
      t.ok(now.usage.outputTokens > was.usage.outputTokens, 'usage is counted on')
      if (was.cost > 0) t.ok(Math.abs(now.cost - 2 * was.cost) < was.cost, `cost goes on: ${was.cost}, ${now.cost}`)
    })

    for (const earlier of [0, 1])
      t.test(
        `killed in the middle of turn ${earlier + 1}: the turn is told as cut off, the next one works`,
        async (t) => {
          const { vendors, start } = await build(t, agent, tools)
          const first = await start()
          const id = await first.create({})
          for (let n = 0; n < earlier; n++) await first.turn(id, script({ text: 'The answer was blue.' }))
          await first.command(id, { type: 'user_message', text: `unfinished ${script({ text: LONG, slowMs: 100 })}` })
          await until(() => knows(vendors, 'unfinished', ''))
          await until(async () => ofType(await first.events(id), 'stream_delta').length > 0)
          const before = (await first.events(id)).filter(({ type }) => type !== 'stream_delta')
          t.not(first.processes(id).length, 0)
          await first.kill()

          const second = await start()
          t.strictSame(first.processes(), [], 'no agent is left of the one that was killed')
          t.match(await second.info(id), { id, status: 'idle' })
          t.match(ends(await second.events(id)).slice(earlier), [
            { subtype: 'interrupted', isError: true, errors: [/restarted/] },
          ])
          const next = await second.turn(id, script({ text: 'Here again.' }))
          t.match(next, { subtype: 'success', result: /Here again/ })
          if (earlier > 0) t.ok(knows(vendors, 'Here again', 'The answer was blue.'))
          t.equal(knows(vendors, 'Here again', 'unfinished'), agent.knowsCutOff, 'what it knows of the turn')
          checkLog(t, await second.events(id), before)
        },
      )

    t.test('released while it is idle: no process is left, and the next message goes on as it was set', async (t) => {
      const { vendors, start } = await build(t, agent, tools)
      const gateway = await start({ idleReleaseMs: 200 })
      const id = await gateway.create({ prompt: script({ text: 'The answer was blue.' }) })
      await gateway.released(id)
      const was = await gateway.info(id)
      t.match(was, { status: 'idle' })
      await gateway.command(id, { type: 'set_permission_mode', mode: 'acceptEdits' })
      if (agent.otherModel) await gateway.command(id, { type: 'set_model', model: agent.otherModel })
      await gateway.released(id)
      const before = await gateway.events(id)
      t.match(await gateway.turn(id, script({ text: 'Here again.' })), { subtype: 'success', result: /Here again/ })
      t.match(await gateway.info(id), { permissionMode: 'acceptEdits', sdkSessionId: was.sdkSessionId })
      t.ok(knows(vendors, 'Here again', 'The answer was blue.'))
      if (agent.otherModel) {
        t.match((await gateway.info(id)).model, agent.otherModel)
        const [{ body = '' } = {}] = vendors.asked.filter(({ body }) => body.includes('Here again'))
        t.match(JSON.parse(body).model, agent.otherModel)
      }
      checkLog(t, await gateway.events(id), before)
    })

    t.test('released before its first turn: it begins then', async (t) => {
      const { start } = await build(t, agent, tools)
      const gateway = await start({ idleReleaseMs: 200 })
      const id = await gateway.create({})
      await gateway.released(id)
      t.match(await gateway.turn(id, script({ text: 'At last.' })), { subtype: 'success', result: /At last/ })
    })

    t.test('what the agent kept is gone: told once with what to do, released or restarted', async (t) => {
      const { start, forget } = await build(t, agent, tools)
      const first = await start({ idleReleaseMs: 200 })
      const released = await first.create({ prompt: script({ text: 'The answer was blue.' }) })
      await until(async () => ends(await first.events(released))[0])
      const restarted = await first.create({ prompt: script({ text: 'The answer was red.' }) })
      await until(async () => ends(await first.events(restarted))[0])
      await first.released(released)
      await first.released(restarted)
      forget()
      await checkGone(t, first, released)
      await first.close()
      const second = await start()
      await checkGone(t, second, restarted)
      t.strictSame(second.processes(), [])
    })

    // the counts of an agent do not depend on its tools: they are looked at without any
    const skip = tools.length > 0 && 'asked of the agent without declared tools'
    t.test('what it used is counted once over release, restart and resume', { skip }, async (t) => {
      const { start } = await build(t, agent, tools)
      const prompt = script({ text: 'The answer was blue.' })
      const first = await start({ idleReleaseMs: 200 })
      const id = await first.create({ prompt })
      await until(async () => ends(await first.events(id))[0])
      await first.released(id)
      const one = await first.info(id)
      if (agent.name === 'opencode') t.ok(one.cost > 0, 'it tells what it costs')
      t.ok(one.usage.outputTokens > 0)
      const checkTotals = ({ cost, usage, numTurns }: SessionInfo, turns: number) => {
        // An agent may ask its model for a title, too.
        const isNear = (total: number, each: number) => Math.abs(total - turns * each) <= each / 2
        t.ok(isNear(cost, one.cost), `${turns} turns cost ${cost}, and the first ${one.cost}`)
        t.ok(isNear(usage.outputTokens, one.usage.outputTokens), `${turns} turns took ${usage.outputTokens} tokens`)
        t.equal(numTurns, turns * one.numTurns)
      }
      for (const turns of [2, 3]) {
        await first.turn(id, prompt)
        await first.released(id)
        checkTotals(await first.info(id), turns)
      }
      await first.close()
      const second = await start({ idleReleaseMs: 200 })
      await second.turn(id, prompt)
      // two of its processes would share one session
      await second.released(id)
      const last = await second.info(id)
      checkTotals(last, 4)
      const resumed = await second.create({ resume: last.sdkSessionId })
      await second.turn(resumed, prompt)
      checkTotals(await second.info(resumed), 1)
    })

    t.test('coming and going leaves nothing behind in the gateway', async (t) => {
      const { start } = await build(t, agent, tools)
      const gateway = await start({ idleReleaseMs: 200 })
      const id = await gateway.create({ prompt: 'hi' })
      await gateway.released(id)
      await gateway.turn(id, 'hi')
      await gateway.released(id)
      const [descriptors, timers] = [gateway.descriptors(), await gateway.timers()]
      for (let n = 0; n < RELEASES; n++) {
        await gateway.turn(id, 'hi')
        await gateway.released(id)
      }
      await until(async () => gateway.descriptors() <= descriptors && (await gateway.timers()) <= timers)
      t.pass(`no more than ${descriptors} descriptors are open, and ${timers} timers`)
    })
  })
}
