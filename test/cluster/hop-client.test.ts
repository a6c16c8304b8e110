import t from 'tap'
import { endToEnd } from '../../src/cluster/hop-client.js'

t.test('a caller names headers of the connection, and none that the message needs', async (t) => {
  const sent = ['Host', 'x', 'X-Own', '1', 'Content-Length', '3', 'Cookie', 'a=b', 'Keep-Alive', '5']
  t.same(endToEnd(sent, 'close, X-Own, content-length, Host, cookie'), [
    ...['Host', 'x', 'Content-Length', '3', 'Cookie', 'a=b'],
  ])
})
