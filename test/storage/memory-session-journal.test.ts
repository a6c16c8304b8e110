import t from 'tap'
import { sessionJournalConformance } from '../../src/sessions/kept/journal-conformance.js'
import { createMemorySessionJournal } from '../../src/storage/memory/session-journal.js'

for (const { name, run } of sessionJournalConformance) t.test(name, () => run(createMemorySessionJournal()))
