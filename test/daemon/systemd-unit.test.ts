import { readFileSync } from 'node:fs'
import t from 'tap'

const unit = readFileSync('examples/systemd/session-gateway.service', 'utf8')
const settingOf = (key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(unit)?.[1]

t.test('the unit tries again as long as it may help', (t) => {
  t.equal(settingOf('Restart'), 'on-failure')
  t.equal(settingOf('RestartPreventExitStatus'), '2', 'a configuration that cannot be used')
  t.equal(settingOf('StartLimitIntervalSec'), '0', 'a database may be away for long')
  t.end()
})

t.test('what the unit needs to start is made by what its head says', (t) => {
  const head = unit.slice(0, unit.indexOf('[Unit]'))
  const folder = settingOf('ReadWritePaths')!
  t.match(head, `install -d -o session-gateway -g session-gateway ${folder}`)
  t.match(readFileSync('docs/operating.md', 'utf8'), `install -d -o session-gateway -g session-gateway ${folder}`)
  t.match(head, `STATE_DIRECTORY=/var/lib/${settingOf('StateDirectory')}`)
  t.end()
})

t.test('names whose server does not answer leave those of others room to be looked up', (t) => {
  const [, threads] = /^Environment=UV_THREADPOOL_SIZE=(\d+)$/m.exec(unit) ?? []
  t.ok(Number(threads) >= 16, 'Node itself has two lookups at a time')
  t.match(readFileSync('docs/operating.md', 'utf8'), `UV_THREADPOOL_SIZE=${threads}`)
  t.end()
})
