import type { Logger } from 'pino'
import t from 'tap'
import { type OnLost, RejoiningServer } from '../../src/daemon/rejoining-server.js'
import type { WorkerServer } from '../../src/server.js'
import { StorageError } from '../../src/storage/storage.js'

const logger = { error() {}, info() {} } as unknown as Logger

/** Servers that are built one after the other: what each does when it is to listen. */
function builtOf(...listens: ((lose: OnLost) => void)[]) {
  const closed: number[] = []
  const losing: OnLost[] = []
  const build = (onLost: OnLost) => {
    const n = losing.push(onLost) - 1
    return {
      listen: async (port: number) => {
        listens[n]!(onLost)
        return { port: port || 1234, host: '127.0.0.1', url: `server ${n}` }
      },
      close: async () => void closed.push(n),
    } as unknown as WorkerServer
  }
  return { server: new RejoiningServer(build, logger), losing, closed }
}

const works = () => {}

t.test('a node that can never join again says why, and tries no more', async (t) => {
  const newer = new StorageError('STORAGE_NEWER', 'The schema was written by a newer version.')
  const refuses = () => {
    throw new Error('it could not start', { cause: newer })
  }
  const { server, losing } = builtOf(works, refuses)
  await server.listen(0)
  losing[0]!('lost')
  t.equal(await server.failed, newer)
  t.equal(losing.length, 2)
  await server.close()
})

t.test('a database that is away is tried again', async (t) => {
  const away = () => {
    throw new StorageError('POSTGRES_AWAY', 'The database cannot be reached.')
  }
  let isBack = () => {}
  const back = new Promise<void>((resolve) => {
    isBack = resolve
  })
  const { server, losing, closed } = builtOf(works, away, () => isBack())
  await server.listen(0)
  losing[0]!('lost')
  await back
  t.same(closed, [0, 1])
  await server.close()
  t.same(closed, [0, 1, 2])
})

t.test('a node that is lost while it begins to listen joins again, too', async (t) => {
  let isBack = () => {}
  const back = new Promise<void>((resolve) => {
    isBack = resolve
  })
  const { server, closed } = builtOf(
    (lose) => lose('lost'),
    () => isBack(),
  )
  await server.listen(0)
  await back
  t.same(closed, [0])
  await server.close()
})
