import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { silentLogger } from '../../src/lib/logger.js'
import { StorageError } from '../../src/storage/storage.js'
import { clusterOf, sessionOn } from '../fixtures/cluster.js'
import { freePort } from '../fixtures/free-port.js'
import { isProblem } from '../fixtures/problem.js'
import { hasPostgres } from '../storage/postgres-world.js'

/** Where nobody listens. */
const unreachable = { url: 'http://127.0.0.1:1' }

if (hasPostgres()) {
  t.test('an owner that cannot be reached is a 503, and nothing was done', async (t: Test) => {
    const told: { err?: Error }[] = []
    const logger = { ...silentLogger, error: (fields: object) => void told.push(fields) }
    const { nodes, join } = await clusterOf(t, ['a'], { logger })
    const [a] = nodes
    const cut = await join('cut', { cluster: unreachable })
    const id = await sessionOn(cut)
    const read = await a.call('GET', `/sessions/${id}`)
    isProblem(t, read, 503, 'SG_ERR_NODE_UNREACHABLE')
    t.equal(read.json.detail, 'The node that has this cannot be reached. Try again shortly.')
    const { status, headers, json } = await a.call('DELETE', `/sessions/${id}`)
    t.match({ status, after: headers.get('retry-after') }, { status: 503, after: '2' })
    t.match(json.detail, 'so nothing was done')
    const why = {
      message: /^The node cut cannot be reached at http:\/\/127\.0\.0\.1:1,/,
      cause: { code: 'ECONNREFUSED' },
    }
    t.match(told, [{ err: { cause: why } }], 'its operator is told which one, and where')
    t.equal(told.length, 1, 'once for both')
    // as with the address of a third node
    const astray = await join('astray', { cluster: { url: a.storage.cluster!.nodes()[0]!.url } })
    const there = await sessionOn(astray)
    told.length = 0
    isProblem(t, await cut.call('GET', `/sessions/${there}`), 503, 'SG_ERR_NODE_UNREACHABLE')
    t.match(told, [
      { err: { cause: { message: /^The node astray/, cause: { message: /^Another node answers there/ } } } },
    ])
    t.equal((await cut.call('GET', `/sessions/${id}`)).status, 200)
  })

  t.test('a port that is taken is said by the name of its option', async (t: Test) => {
    const { nodes, join } = await clusterOf(t, ['a'])
    const { url } = nodes[0].storage.cluster!.nodes()[0]!
    const listen = { host: '127.0.0.1', port: Number(new URL(url).port) }
    await t.rejects(join('b', { cluster: { listen } }), {
      ...{ code: 'SG_ERR_OPTION', errors: [{ path: 'cluster.listen' }] },
      message: /another process/,
    })
    t.equal(nodes[0].storage.cluster!.nodes().length, 1, 'it has not joined')
  })

  t.test('a database that goes away between two questions of a request is a 503', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a'])
    const [a] = nodes
    const cluster = a.storage.cluster!
    const ask = cluster.placeOfExecution.bind(cluster)
    let asked = 0
    Object.assign(cluster, {
      placeOfExecution: (id: string) =>
        ++asked > 1 ? Promise.reject(new StorageError('STORAGE_FAILED', 'connection lost')) : ask(id),
    })
    const result = { status: 'ok', output: { type: 'text', value: '' } }
    isProblem(t, await a.call('POST', '/executions/unknown/result', result), 503, 'SG_ERR_STORE_UNAVAILABLE')
    t.equal(asked, 2)
  })

  t.test('and one that goes away while a session comes into memory that is this node’s already', async (t: Test) => {
    const { nodes } = await clusterOf(t, ['a', 'b'])
    const [a, b] = nodes
    const id = await sessionOn(a)
    await a.stop()
    // as it is when what came of that was not heard
    t.equal((await b.storage.cluster!.claim(id))?.owner?.n, b.storage.cluster!.n)
    const journal = b.storage.journal!
    const get = journal.get.bind(journal)
    let asked = 0
    Object.assign(journal, {
      get: (id: string) =>
        ++asked === 2 ? Promise.reject(new StorageError('STORAGE_FAILED', 'connection lost')) : get(id),
    })
    const say = () => b.call('POST', `/sessions/${id}/commands`, { type: 'user_message', text: 'more' })
    isProblem(t, await say(), 503, 'SG_ERR_STORE_UNAVAILABLE')
    t.equal(asked, 2)
    t.match(await say(), { status: 200 })
  })

  t.test('an owner that goes away in the midst of its answer: nobody takes what came for whole', async (t: Test) => {
    // where the others reach it: what it says passes, until it is cut
    let toOwner = 0
    const passed: Socket[] = []
    const relay = createServer((client) => {
      const owner = connect(toOwner, '127.0.0.1')
      passed.push(client)
      owner.on('error', () => {}).on('data', (chunk) => client.write(chunk))
      client.on('error', () => {}).on('data', (chunk) => owner.write(chunk))
      client.on('close', () => owner.destroy())
    }).listen(0, '127.0.0.1')
    await once(relay, 'listening')
    t.teardown(() => relay.close())
    const port = (relay.address() as AddressInfo).port
    const { nodes, join } = await clusterOf(t, ['a'])
    // not before: whatever connects to something is given a port of the same range
    toOwner = await freePort()
    const owner = await join('owner', {
      cluster: { url: `http://127.0.0.1:${port}`, listen: { host: '127.0.0.1', port: toOwner } },
    })
    const id = await sessionOn(owner)
    const [a] = nodes
    t.equal((await a.call('GET', `/sessions/${id}`)).status, 200)
    const stream = await fetch(`${a.api}/sessions/${id}/events`, { headers: { accept: 'text/event-stream' } })
    const reader = stream.body!.getReader()
    t.match(new TextDecoder().decode((await reader.read()).value), /event: attached|data:/)
    for (const socket of passed) socket.destroy()
    await t.rejects(async () => {
      while (!(await reader.read()).done);
    }, 'its end is none')
    const other = await sessionOn(a)
    t.equal((await a.call('GET', `/sessions/${other}`)).status, 200, 'nobody else is harmed')
    t.equal((await a.call('GET', `/sessions/${id}`)).status, 200, 'and it is asked again')
  })
}
