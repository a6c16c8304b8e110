import t from 'tap'
import { eventJournalConformance } from '../../src/sessions/journal-conformance.js'
import { createMemoryEventJournal } from '../../src/storage/memory/event-journal.js'

for (const { name, run } of eventJournalConformance) t.test(name, () => run(createMemoryEventJournal()))
