import t from 'tap'
import type { SessionInfo, SessionStatus } from '../../schemas/sessions.js'
import { KeyedLock } from '../../src/lib/keyed-lock.js'
import { Places } from '../../src/sessions/places.js'
import { SessionTable } from '../../src/sessions/session-table.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

t.test('what a stored session goes on from is known without reading it into memory, until it has ended', (t) => {
  const table = new SessionTable(new VirtualClock(), new Places(1, () => {}), new KeyedLock())
  const adopt = (status: SessionStatus, sdkSessionId: string) => {
    const id = `${status}-${sdkSessionId}`
    const info = { id, status, sdkSessionId, engine: 'cli', title: 'about theirs' }
    table.adopt(id, 1, 'p', info as SessionInfo, undefined)
  }
  adopt('idle', 'released')
  adopt('parked', 'waiting')
  adopt('closed', 'over')
  adopt('failed', 'broken')
  t.ok(table.isContinued('released'))
  t.ok(table.isContinued('waiting'))
  for (const other of ['over', 'broken', 'theirs', 'unknown']) t.notOk(table.isContinued(other), other)
  table.remove('idle-released')
  t.notOk(table.isContinued('released'))
  t.end()
})
