import { existsSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { cliEngine, cliSubject, deleteSdkSession, listSdkSessions } from '../../src/engines/cli/index.js'
import type { SessionRunnerConfig } from '../../src/engines/runner.js'
import { createWorkerServer } from '../../src/server.js'
import { attach } from '../fixtures/client.js'
import { processesOf, whenGone } from '../fixtures/processes.js'
import { ScriptedHost } from '../fixtures/scripted-host.js'
import { type AgentUnderTest, CLAUDE_SDK } from './installed.js'
import { script, startVendors } from './vendors.js'

/** Takes twenty seconds to say, and does not repeat itself. */
const LONG = Array.from({ length: 200 }, (_, index) => `word${index}`).join(' ')

/** A clean home and working directory for an agent, and vendors on loopback. */
async function build(t: Test, agent: AgentUnderTest) {
  const vendors = await startVendors(t)
  const home = realpathSync(mkdtempSync(join(tmpdir(), `${agent.name}-`)))
  const cwd = join(home, 'work')
  mkdirSync(cwd)
  for (const [path, text] of Object.entries(agent.files(vendors.url))) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  const env = { PATH: process.env.PATH!, HOME: home, ...agent.env(home, vendors.url) }
  const engine = cliEngine({ agents: [agent.declaration], claudeSdk: CLAUDE_SDK, env, maxConcurrentStarts: 1 })
  const profile = { name: agent.name, engine: 'cli' as const, agent: agent.name }
  const start = async (config: Partial<SessionRunnerConfig> = {}) => {
    const runner = await engine({
      ...{ sessionId: crypto.randomUUID(), profile, bridge: { execute: () => Promise.reject(new Error('not here')) } },
      config: { cwd, permissionMode: 'default', ...config },
    })
    t.teardown(() => runner.close())
    const host = new ScriptedHost()
    await runner.start(host)
    return { runner, host }
  }
  const subject = cliSubject({ agents: [agent.declaration], env }, profile)
  return { vendors, cwd, engine, profile, subject, start }
}

/** One that has gone with its parent is gone. */
function end(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {}
}

/** What every agent is shown to do, driven for real. */
export function showAgent(agent: AgentUnderTest): void {
  t.test(agent.name, { skip: agent.missing ?? false }, async (t) => {
    t.test('over REST and a socket: ask, allow, answer, usage, interrupt, close, and no process is left', async (t) => {
      const { cwd, engine, profile, vendors } = await build(t, agent)
      const worker = createWorkerServer(
        { allowUnauthenticated: true, profiles: [profile], agents: [agent.declaration] },
        { createCliRunner: engine, env: {} },
      )
      t.teardown(() => worker.close())
      const { url } = await worker.listen(0)
      const api = `${url}/v1`
      const post = (path: string, body: object) =>
        fetch(`${api}${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      const created = await post('/sessions', { cwd })
      t.equal(created.status, 201)
      const { id } = (await created.json()) as { id: string }
      const client = await attach(t, api, id)
      await client.untilEvent('system_init')
      t.equal(vendors.calls(), 0, 'nothing was asked of a model')

      client.send({
        type: 'user_message',
        text: script({ text: 'one two', ...agent.shell('echo made > made.txt') }, { text: 'all done' }),
      })
      await client.untilEvent('permission_requested')
      t.notOk(existsSync(join(cwd, 'made.txt')))
      const asked = client.events.find((event) => event.type === 'permission_requested')
      if (asked?.type !== 'permission_requested') throw new Error('unreachable')
      t.equal((await post(`/sessions/${id}/permissions/${asked.request.id}`, { behavior: 'allow' })).status, 200)
      await client.untilEvent('turn_completed')
      t.ok(existsSync(join(cwd, 'made.txt')), 'what was allowed has run')
      t.ok(client.events.some((event) => event.type === 'stream_delta'))
      const blocks = client.events.flatMap((event) =>
        (event.type === 'assistant_message' || event.type === 'user_message') &&
        typeof event.message.content !== 'string'
          ? event.message.content
          : [],
      )
      t.match(
        blocks.filter((block) => block.type.startsWith('tool_')),
        [
          { type: 'tool_use', id: asked.request.toolUseId },
          { type: 'tool_result', tool_use_id: asked.request.toolUseId },
        ],
      )
      const [end] = client.events.filter((event) => event.type === 'turn_completed')
      t.match(end, { subtype: 'success', isError: false, result: /all done/ })
      const info = (await (await fetch(`${api}/sessions/${id}`)).json()) as {
        status: string
        usage: { outputTokens: number }
      }
      t.equal(info.status, 'idle')
      t.ok(info.usage.outputTokens >= 50, `usage was counted: ${JSON.stringify(info.usage)}`)

      const deltas = client.events.filter((event) => event.type === 'stream_delta').length
      client.send({ type: 'user_message', text: script({ text: LONG, slowMs: 100 }) })
      await client.until(({ events }) => events.filter((event) => event.type === 'stream_delta').length > deltas + 2)
      client.send({ type: 'interrupt' })
      await client.until(({ events }) => events.filter((event) => event.type === 'turn_completed').length > 1)
      t.match(client.events.filter((event) => event.type === 'turn_completed')[1], { subtype: 'interrupted' })

      const pids = processesOf(id)
      t.ok(pids.length > 0)
      t.equal((await fetch(`${api}/sessions/${id}`, { method: 'DELETE' })).status, 200)
      for (const pid of pids) await whenGone(pid)
      t.strictSame(processesOf(id), [])
    })

    t.test('what is denied does not run, nor anything in plan mode', async (t) => {
      const { cwd, start } = await build(t, agent)
      const { runner, host } = await start()
      host.answer = () => ({ behavior: 'deny', message: 'no' })
      const goesOn =
        agent.denied === 'goes on' ? { subtype: 'success', result: /so be it/ } : { subtype: 'interrupted' }
      t.match(await host.turn(runner, script(agent.shell('touch denied.txt'), { text: 'so be it' })), goesOn)
      t.equal(host.asks.length, 1)
      t.notOk(existsSync(join(cwd, 'denied.txt')))
      host.answer = () => ({ behavior: 'allow' })
      await runner.setPermissionMode!('plan')
      t.match(await host.turn(runner, script(agent.shell('touch planned.txt'), { text: 'so be it' })), goesOn)
      t.notOk(existsSync(join(cwd, 'planned.txt')))
      t.equal(host.asks.length, 1)
    })

    t.test('a refusal of the vendor ends the turn with its reason, and the session goes on', async (t) => {
      const { start } = await build(t, agent)
      const { runner, host } = await start()
      const end = await host.turn(runner, script({ status: 400 }))
      t.match(end, { isError: true, subtype: 'error_during_execution' })
      t.match(end.errors?.join(), /400|scripted/)
      t.match(await host.turn(runner, script({ text: 'better' })), { isError: false, result: /better/ })
    })

    t.test('a killed agent ends the session, and leaves nothing behind', async (t) => {
      const { start } = await build(t, agent)
      const { runner, host } = await start()
      const died = host.next('session_error')
      const speaks = host.next('stream_delta')
      runner.send(script({ text: LONG, slowMs: 100 }))
      await speaks
      for (const pid of processesOf()) end(pid)
      t.match(await died, { code: 'SG_ERR_ENGINE_FAILED' })
      await runner.close()
    })

    t.test(
      'an earlier session is resumed with its history',
      { skip: agent.resumes === 'not within a minute' },
      async (t) => {
        const { start, vendors } = await build(t, agent)
        const first = await start()
        await first.host.turn(first.runner, 'remember this')
        const { sdkSessionId } = first.host.of('system_init')[0]!
        await first.runner.close()
        const { runner, host } = await start({ resume: sdkSessionId })
        t.match(host.of('user_message')[0], { replay: true, message: { content: /remember this/ } })
        if (agent.resumes === 'complete') t.ok(host.of('assistant_message').some(({ replay }) => replay))
        t.match(await host.turn(runner, 'hi'), { isError: false, result: /pong/ })
        const unknown = start({ resume: crypto.randomUUID() })
        await t.rejects(unknown, { code: 'SG_ERR_ENGINE_START' }, 'an id that nobody knows is refused')
        if (!runner.capabilities.fork) return
        await runner.close()
        const copy = await start({ resume: sdkSessionId, forkSession: true })
        t.not(copy.host.of('system_init')[0]?.sdkSessionId, sdkSessionId)
        vendors.asked.length = 0
        t.match(await copy.host.turn(copy.runner, 'hi'), { isError: false, result: /pong/ })
        t.ok(
          vendors.asked.some(({ body }) => body.includes('remember this')),
          'the copy knows what was said',
        )
      },
    )

    t.test(
      'what it keeps on disk is listed, and deleted if it can',
      { skip: agent.keeps === 'unlisted' },
      async (t) => {
        const { cwd, start, subject } = await build(t, agent)
        const keep = async () => {
          const { runner, host } = await start()
          await host.turn(runner, 'remember this')
          await runner.close()
          return host.of('system_init')[0]!.sdkSessionId
        }
        const listed = async (dir?: string) =>
          (await listSdkSessions([subject], { dir, limit: 10, offset: 0 }, CLAUDE_SDK)).map((one) => one.sessionId)
        const remove = (sessionId: string, dir?: string) =>
          deleteSdkSession(subject, { sessionId, dir, assertUnused: async () => {} }, CLAUDE_SDK)
        const [one, two] = [await keep(), await keep()]
        t.strictSame((await listed(cwd)).sort(), [one, two].sort())
        t.strictSame(await listed(tmpdir()), [], 'nothing of another directory')
        if (agent.keeps === 'listed') {
          await t.rejects(remove(one, cwd), { code: 'SG_ERR_UNSUPPORTED' })
          return
        }
        await t.rejects(remove(one, tmpdir()), { code: 'SG_ERR_SDK_SESSION_NOT_FOUND' })
        await t.rejects(remove(crypto.randomUUID(), cwd), { code: 'SG_ERR_SDK_SESSION_NOT_FOUND' })
        await remove(one, cwd)
        t.strictSame(await listed(cwd), [two])
        await t.rejects(remove(one), { code: 'SG_ERR_SDK_SESSION_NOT_FOUND' })
        await t.rejects(start({ resume: one }), { code: 'SG_ERR_ENGINE_START' }, 'it is gone')
      },
    )
  })
}
