import t from 'tap'
import { until } from '../fixtures/build.js'
import { failingRecords } from '../fixtures/failing-disk.js'
import { buildParked, ok } from '../fixtures/parked.js'
import type { Script } from '../fixtures/scripted-engine.js'
import { turns } from '../fixtures/turns.js'

t.test('what is taken back from a record is taken back also when the store refuses that once', async (t) => {
  const { disk, inner, store } = failingRecords()
  const { registry, executions, engine, clock, id, park } = await buildParked(t, { parking: { store } })
  await park()
  disk.hold()
  const refused = t.rejects(executions.submit('e1', ok), { code: 'SG_ERR_STORE_UNAVAILABLE' })
  await until(() => disk.held === 1)
  await clock.advance(8_000)
  await refused
  disk.fails = 'EIO'
  disk.release()
  await turns()
  t.match(await inner.get(id), { executions: [], hasNews: true }, 'it was done late')
  disk.fails = undefined
  await clock.advance(1_000)
  await until(async () => (await inner.get(id))?.executions.length === 1, 'nothing of it')
  t.match(await inner.get(id), { hasNews: false, results: [], settled: [] })
  t.match(await executions.submit('e1', { status: 'failed', reason: 'x', error: 'later' }), { applied: true })
  await until(() => engine.last.settled.length === 1)
  t.match(engine.last.settled, [{ result: { error: 'later' } }])
  t.equal((await registry.get(id))?.status, 'running')
})

t.test('no number is given twice when what a failed wake told could not be kept', async (t) => {
  const { disk, store } = failingRecords()
  let broken = true
  const start: Script['start'] = (runner) => {
    if (broken && runner.context.restore) throw new Error('no memory')
    runner.init()
  }
  const { registry, executions, clock, id, park } = await buildParked(t, { parking: { store }, script: { start } })
  await park()
  const seqs: number[] = []
  registry.on('session_event', ({ event }) => void seqs.push(event.seq))
  await executions.submit('e1', ok)
  await until(() => registry.here(id)?.statusDetail !== undefined)
  disk.fails = 'EIO'
  // tried again after one and two seconds, and then not for long enough that nobody looks
  for (let second = 0; second < 60; second++) await clock.advance(1_000)
  broken = false
  disk.fails = undefined
  for (let second = 0; second < 60; second++) await clock.advance(1_000)
  await until(() => registry.here(id)?.status === 'running')
  t.same(
    seqs,
    [...new Set(seqs)].sort((a, b) => a - b),
  )
})
