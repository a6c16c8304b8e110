import t from 'tap'
import { sessionJournalConformance } from '../../src/sessions/kept/journal-conformance.js'
import { sessionOf } from '../../src/storage/conformance-fixtures.js'
import { createMemorySessionJournal } from '../../src/storage/memory/session-journal.js'

for (const { name, run } of sessionJournalConformance) t.test(name, () => run(createMemorySessionJournal()))

t.test('a write with a snapshot that is no JSON is refused as a whole', async (t) => {
  const journal = createMemorySessionJournal()
  const { state, ...first } = sessionOf('one')
  await journal.write({ ...first, state })
  const snapshot = { engine: 'provider', state: 1n }
  const later = { ...state, info: { ...state.info, status: 'closed' as const } }
  await t.rejects(journal.write({ id: 'one', state: later, snapshot }), TypeError)
  t.match(await journal.get('one'), { state })
  t.match(await journal.restTotals!(), { closed: 0 })
})
