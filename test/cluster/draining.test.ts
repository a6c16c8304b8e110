import t from 'tap'
import { SOME_CWD, until } from '../fixtures/build.js'
import { clusterOf, sessionOn } from '../fixtures/cluster.js'
import { native } from '../fixtures/parked.js'
import { isProblem } from '../fixtures/problem.js'
import { hasPostgres } from '../storage/postgres-world.js'

if (hasPostgres()) {
  t.test('what a node that drains had and that rests is served by the others, long before it is gone', async (t) => {
    // the turn is not to be cut off before it ends
    const options = { script: native, parking: { parkDelayMs: 600_000 }, shutdownTimeoutMs: 30_000 }
    const { nodes } = await clusterOf(t, ['leaves', 'stays'], options)
    const [leaves, stays] = nodes
    const create = async (request: object): Promise<string> =>
      (await leaves.call('POST', '/sessions', { cwd: SOME_CWD, ...request })).json.id
    const read = (id: string) => stays.call('GET', `/sessions/${id}`)
    const say = (id: string) => stays.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'more' })
    const [seen, idle] = [await sessionOn(leaves), await sessionOn(leaves)]
    const busy = await create({ prompt: 'go' })
    const atWork = leaves.engine.last
    let hasHeard = false
    atWork.interrupt = async () => {
      hasHeard = true
    }
    const asking = await create({ prompt: 'ask', approvalTimeoutMs: 0 })
    void leaves.engine.last.host.requestPermission({ toolName: 'Write', toolUseId: 'u1', input: { path: 'a' } })
    await until(async () => (await stays.call('GET', '/inbox')).json.length === 1, 'a question')
    const [{ request }] = (await stays.call('GET', '/inbox')).json

    let isGone = false
    const stopping = leaves.stop().then(() => {
      isGone = true
    })
    t.match(await read(seen), { status: 200, json: { status: 'idle' } })
    t.match(await say(idle), { status: 200 })
    t.match(stays.engine.last, { context: { sessionId: idle }, sent: [{ text: 'more' }] })
    t.match(await stays.call('POST', `/sessions/${asking}/permissions/${request.id}`, { behavior: 'allow' }), {
      status: 200,
    })
    await until(async () => (await read(asking)).json.status === 'running', 'it goes on')
    t.match(stays.engine.last.context, { sessionId: asking })
    await until(() => hasHeard, 'the turn is to end')
    t.match(await read(busy), { status: 200, json: { status: 'running' } }, 'and what is at work there is shown')
    t.match(await stays.call('GET', `/sessions/${busy}/events`), { status: 200 })
    isProblem(t, await leaves.call('GET', `/sessions/${busy}`), 503, 'SG_ERR_SHUTTING_DOWN')
    t.notOk(isGone)

    const cluster = leaves.storage.cluster!
    const placeOf = cluster.placeOfSession.bind(cluster)
    let isAsked = false
    Object.assign(cluster, {
      placeOfSession: (id: string) => {
        isAsked = true
        return placeOf(id)
      },
    })
    const said = say(busy)
    await until(() => isAsked, 'it is asked for it')
    atWork.complete()
    t.match(await said, { status: 200 }, 'whoever says something to it waits for that')
    t.match(stays.engine.last, { context: { sessionId: busy }, sent: [{ text: 'more' }] })
    await stopping
    for (const id of [seen, idle, asking, busy])
      t.equal((await stays.storage.cluster!.placeOfSession(id))?.owner?.name, 'stays')
  })
}
