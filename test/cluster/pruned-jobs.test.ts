import t, { type Test } from 'tap'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf } from '../fixtures/cluster.js'
import { WebhookSink } from '../fixtures/webhook-sink.js'
import { hasPostgres, postgres } from '../storage/postgres-world.js'

if (hasPostgres())
  t.test('nothing stays of what became of deliveries of a job that another node prunes meanwhile', async (t: Test) => {
    const server = await postgres()
    const sink = await WebhookSink.start(t)
    let release = () => {}
    const held = new Promise<void>((resolve) => (release = resolve))
    sink.answer = (_received, response) => void held.then(() => response.writeHead(200).end())
    const { nodes, schema } = await clusterOf(t, ['a'], {
      queue: { retention: { maxAgeMs: 3_600_000 } },
      webhookPolicy: { allowPrivateNetworks: true },
    })
    const [a] = nodes
    const job = (prompt: string) => ({ session: { prompt, cwd: SOME_CWD }, webhook: { url: sink.url } })
    const ids: string[] = []
    for (const prompt of ['pruned', 'kept']) ids.push((await a.call('POST', '/jobs', job(prompt))).json.id)
    for (const id of ids) {
      await until(async () => (await a.call('DELETE', `/jobs/${id}`)).json?.status === 'canceled', 'its end')
      await until(() => sink.received.some(({ text }) => text.includes(id)), 'a delivery of it')
    }
    // as the sweep of another node does, which has nothing of it under way
    await server.query(`DELETE FROM ${schema}.jobs WHERE id = $1`, [ids[0]])
    release()
    const left = (table: string) => server.query(`SELECT DISTINCT lane FROM ${schema}.${table}`)
    await until(async () => (await left('deliveries')).length === 0, 'that all is delivered')
    await until(async () => (await left('delivery_attempts')).length < 2, 'that it is forgotten')
    t.same(await left('delivery_attempts'), [{ lane: ids[1] }])
  })
