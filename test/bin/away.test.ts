import t from 'tap'
import { Away } from '../../bin/terminal/away.js'
import { EXIT } from '../../bin/terminal/exit.js'
import { unreachable } from '../../client/errors.js'

t.test('whoever gives up a gateway that is away is told what went wrong last', (t) => {
  let giveUp = () => {}
  t.intercept(globalThis, 'setTimeout', {
    value: (run: () => void) => {
      giveUp = run
      return 0
    },
  })
  t.intercept(process.stderr, 'write', { value: () => true })
  const failures: unknown[] = []
  const away = new Away({ goesOn: 'The session goes on.', leave: (failure) => void failures.push(failure) })
  const lost = (tries: number, message?: string) => {
    away.onConnection({
      ...{ state: 'reconnecting', retryAt: 0, tries },
      ...(message !== undefined && { error: unreachable(message) }),
    })
  }
  lost(0, 'No answer from http://a.test.')
  lost(1, 'Something in between holds event streams back.')
  lost(2)
  giveUp()
  t.match(failures, [
    {
      message: 'The gateway cannot be reached. Something in between holds event streams back. The session goes on.',
      exitCode: EXIT.connection,
    },
  ])
  t.end()
})
