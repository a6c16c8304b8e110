import t from 'tap'
import { failureOf } from '../../src/storage/postgres/failures.js'

t.test('who is let in neither without encryption nor with it is told what to look at', async (t) => {
  const refused = (how: string) => {
    const who = 'no pg_hba.conf entry for host "10.0.0.1", user "gateway", database "ssl"'
    return failureOf(Object.assign(new Error(`${who}, ${how}`), { code: '28000' }), 'The database').code
  }
  // since PostgreSQL 13, and before
  t.same(['no encryption', 'SSL off'].map(refused), ['POSTGRES_TLS', 'POSTGRES_TLS'])
  t.same(['SSL encryption', 'SSL on'].map(refused), ['POSTGRES_DENIED', 'POSTGRES_DENIED'])
})
