import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { SessionEvent } from '../../schemas/events.js'
import { cliEngine } from '../../src/engines/cli/index.js'
import { until } from '../fixtures/build.js'
import { CLUSTER_SECRET, clusterOf, type NodeOptions, type TestNode } from '../fixtures/cluster.js'
import { runDaemon } from '../fixtures/daemon-process.js'
import { isProblem } from '../fixtures/problem.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'
import { AGENTS, CLAUDE_SDK } from './installed.js'
import { script, startVendors, type Vendors } from './vendors.js'

const { claude } = AGENTS
const DEPLOY = 'mcp__session-gateway__deploy'
const deploy = { name: 'deploy', description: 'Deploys a branch.', inputSchema: { type: 'object' } }
const LONG = Array.from({ length: 2_000 }, (_, index) => `word${index}`).join(' ')

/** Nodes with the real agent, that have a working directory in common and a config directory each. */
async function nodesOf<Names extends string[]>(t: Test, names: readonly [...Names], options: NodeOptions = {}) {
  const vendors = await startVendors(t)
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'claude-nodes-')))
  const cwd = join(root, 'work')
  mkdirSync(cwd)
  const home = (name: string) => join(root, name)
  const cluster = await clusterOf(t, names, {
    ...{ leaseMs: 4_000, agentState: 'copied', parking: { parkDelayMs: 0 } },
    profiles: [{ name: 'claude', engine: 'cli', agent: 'claude' }],
    executions: { tools: [deploy] },
    cli(name, storage) {
      mkdirSync(join(home(name), 'claude'), { recursive: true })
      const env = { PATH: process.env.PATH!, HOME: home(name), ...claude.env(home(name), vendors.url) }
      return cliEngine({ claudeSdk: CLAUDE_SDK, env, maxConcurrentStarts: 2, carried: storage.cluster!.carried })
    },
    ...options,
  })
  const create = async (node: TestNode, request: object) => {
    const { status, json } = await node.call('POST', '/sessions', { cwd, ...request })
    if (status !== 201) throw new Error(JSON.stringify(json))
    return json.id as string
  }
  /** What a node has of a session's transcript. */
  const transcript = (name: string, sdkSessionId: string): string => {
    const projects = join(home(name), 'claude/projects')
    const found = existsSync(projects) ? readdirSync(projects, { recursive: true }) : []
    const path = (found as string[]).find((one) => one.endsWith(`${sdkSessionId}.jsonl`))
    return path ? readFileSync(join(projects, path), 'utf8') : ''
  }
  return { ...cluster, vendors, create, transcript }
}

const infoAt = async (node: TestNode, id: string) => (await node.call('GET', `/sessions/${id}`)).json
/** Of a session whose node is gone nobody shows a log until another has taken it over. */
async function logAt(node: TestNode, id: string): Promise<SessionEvent[]> {
  let log: SessionEvent[] | undefined
  await until(async () => {
    const { status, json } = await node.call('GET', `/sessions/${id}/events`)
    if (status === 200) log = json.events
    return log !== undefined
  }, `a log that is shown at ${node.name}`)
  return log!
}
const endsAt = async (node: TestNode, id: string) =>
  (await logAt(node, id)).filter((event) => event.type === 'turn_completed')

/** Takes a turn at a node, as soon as that one has the session. */
async function turn(node: TestNode, id: string, text: string) {
  const before = (await endsAt(node, id)).length
  const say = () => node.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text })
  await until(async () => (await say()).status === 200, `a message that is taken at ${node.name}`)
  await until(async () => (await endsAt(node, id)).length > before, `the end of a turn at ${node.name}`)
  return (await endsAt(node, id))[before]!
}

/** What the model was told with a prompt. */
const toldWith = ({ asked }: Vendors, prompt: string): string =>
  asked.findLast(({ body }) => body.includes(prompt))?.body ?? ''

if (hasPostgres())
  t.test(
    'the real claude at several nodes that have no directory of it in common',
    { skip: claude.missing ?? false },
    async (t) => {
      t.test('it goes on at another node with its whole history, and at the first one again', async (t) => {
        const { nodes, join, vendors, create, transcript } = await nodesOf(t, ['a', 'b'])
        const [a, b] = nodes
        const id = await create(a, { prompt: script({ text: 'The answer was blue.' }) })
        await until(async () => (await endsAt(b, id)).length === 1, 'its first turn')
        a.cutOff()
        t.match(await turn(b, id, script({ text: 'Here again.' })), { subtype: 'success', result: /Here again/ })
        t.match(toldWith(vendors, 'Here again'), /The answer was blue/)
        const { sdkSessionId, numTurns } = await infoAt(b, id)
        t.equal(numTurns, 2)
        t.match(transcript('a', sdkSessionId), /The answer was blue/)
        t.notMatch(transcript('a', sdkSessionId), /Here again/)

        const again = await join('a')
        await b.stop()
        t.match(await turn(again, id, script({ text: 'At home.' })), { subtype: 'success', result: /At home/ })
        t.match(toldWith(vendors, 'At home'), /The answer was blue.*Here again/s)
        t.equal((await infoAt(again, id)).sdkSessionId, sdkSessionId)
        const seqs = (await logAt(again, id)).map(({ seq }) => seq)
        t.same(
          seqs,
          [...new Set(seqs)].sort((one, other) => one - other),
        )
      })

      t.test(
        'what a node wrote of a turn that was cut off with it is not part of what goes on elsewhere',
        async (t) => {
          const { nodes, join, vendors, create, transcript } = await nodesOf(t, ['a', 'b'])
          const [a, b] = nodes
          const id = await create(a, { prompt: script({ text: 'The answer was blue.' }) })
          await until(async () => (await endsAt(b, id)).length === 1, 'its first turn')
          await a.call('POST', `/sessions/${id}/commands`, {
            type: 'user_message',
            text: `unfinished ${script({ text: LONG, slowMs: 100 })}`,
          })
          await until(() => toldWith(vendors, 'unfinished') !== '', 'a turn that is under way')
          const { sdkSessionId } = await infoAt(a, id)
          await until(() => transcript('a', sdkSessionId).includes('unfinished'), 'what it has written down')
          a.cutOff()
          await until(async () => (await endsAt(b, id)).length === 2, 'the turn is told as cut off')
          t.match((await endsAt(b, id))[1], { subtype: 'interrupted' })
          t.match(await turn(b, id, script({ text: 'Here again.' })), { subtype: 'success' })
          t.match(toldWith(vendors, 'Here again'), /The answer was blue/)
          t.notMatch(toldWith(vendors, 'Here again'), /unfinished/)
          await b.stop()
          const again = await join('a')
          t.match(await turn(again, id, script({ text: 'At home.' })), { subtype: 'success' })
          t.notMatch(toldWith(vendors, 'At home'), /unfinished/, 'nor of what goes on where it was written')
        },
      )

      t.test('parked in the middle of a turn, it goes on elsewhere with the result', async (t) => {
        const { nodes, vendors, create } = await nodesOf(t, ['a', 'b'])
        const [a, b] = nodes
        const id = await create(a, {
          prompt: script({ text: 'I deploy it.', tool: DEPLOY, input: {} }, { text: 'Deployed.' }),
        })
        await until(async () => (await b.storage.journal!.get(id))?.sleeps, 'asleep')
        const { parked } = await infoAt(b, id)
        a.cutOff()
        const result = { status: 'ok', output: { type: 'json', value: { url: 'https://deployed.example' } } }
        const submit = () => b.call('POST', `/executions/${parked.executions[0].executionId}/result`, result)
        await until(async () => (await submit()).json.applied, 'a result that is taken')
        await until(async () => (await endsAt(b, id)).length === 1, 'the end of its turn')
        t.match((await endsAt(b, id))[0], { subtype: 'success', result: /Deployed/ })
        t.match(toldWith(vendors, 'deployed.example'), /I deploy it/)
      })

      t.test('what the storage has not is said: it was kept nowhere but on a node that is gone', async (t) => {
        const { nodes, create } = await nodesOf(t, ['a', 'b'])
        const [a, b] = nodes
        const id = await create(a, { prompt: script({ text: 'The answer was blue.' }) })
        await until(async () => (await endsAt(b, id)).length === 1, 'its first turn')
        await a.stop()
        const { schema } = b.storage as never
        t.equal(schema, undefined)
        for (const { path } of await b.storage.cluster!.carried.pieces(id))
          await b.storage.cluster!.carried.write(id, { path, offset: 0, length: 0, digest: '' }, Buffer.alloc(0))
        const say = () => b.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'more' })
        isProblem(t, await say(), 409, 'SG_ERR_AGENT_STATE_GONE')
        t.match(await infoAt(b, id), { status: 'failed', statusDetail: /Create a new session/ })
      })

      t.test('so it does between two daemons, the first of which was killed', async (t) => {
        const [vendors, server] = [await startVendors(t), await postgres()]
        const root = realpathSync(mkdtempSync(join(tmpdir(), 'claude-daemons-')))
        const cwd = join(root, 'work')
        mkdirSync(cwd)
        const start = async (name: string) => {
          const folder = join(root, name)
          mkdirSync(join(folder, 'claude'), { recursive: true })
          const nodes = { url: 'http://127.0.0.1:0', listen: { host: '127.0.0.1', port: 0 }, secret: CLUSTER_SECRET }
          const config = {
            ...{ listen: { port: 0 }, allowUnauthenticated: true, allowedCwdRoots: [cwd] },
            profiles: [{ name: 'claude', engine: 'cli', agent: 'claude' }],
            storage: { postgres: { url: server.url(), schema: 'daemons' } },
            cluster: { ...nodes, node: name, leaseMs: 4_000, agentState: 'copied' },
            log: { level: 'info', pretty: false },
          }
          writeFileSync(join(folder, 'gateway.json'), JSON.stringify(config), { mode: 0o600 })
          const env = { HOME: folder, CLAUDE_SDK_AT: CLAUDE_SDK, ...claude.env(folder, vendors.url) }
          const daemon = runDaemon(t, [], { cwd: folder, env, loaders: ['claude-sdk'], isClean: true })
          const url = String((await daemon.logged('listening')).url)
          const ask = async (path: string, body?: object) => {
            const answer = await fetch(url + path, {
              ...(body && { method: 'POST', headers: { 'content-type': 'application/json' } }),
              ...(body && { body: JSON.stringify(body) }),
            })
            // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely
            return { status: answer.status, json: (await answer.json()) as any }
          }
          return { daemon, ask }
        }
        const [a, b] = [await start('a'), await start('b')]
        const { id } = (await a.ask('/sessions', { cwd, prompt: script({ text: 'The answer was blue.' }) })).json
        // only what is told of a turn is kept: how many there were is known a moment before
        const ends = async () => {
          const { status, json } = await b.ask(`/sessions/${id}/events`)
          return status === 200 ? json.events.filter(({ type }: SessionEvent) => type === 'turn_completed').length : 0
        }
        await until(async () => (await ends()) === 1, 'its first turn')
        a.daemon.child.kill('SIGKILL')
        const more = { type: 'user_message', text: script({ text: 'Here again.' }) }
        await until(
          async () => (await b.ask(`/sessions/${id}/commands`, more)).status === 200,
          'a message that is taken',
        )
        await until(async () => (await ends()) === 2, 'its second turn')
        t.match(toldWith(vendors, 'Here again'), /The answer was blue/)
      })
    },
  )
