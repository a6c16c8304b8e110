import t from 'tap'
import { SessionCost } from '../../../src/engines/cli/acp/cost.js'

/** A later process of the same agent, which goes on with its session. */
const successor = (cost: SessionCost) => new SessionCost(JSON.parse(JSON.stringify(cost.state)))

t.test('what the agent’s session had cost is not counted again by each process that goes on with it', (t) => {
  let cost = new SessionCost({ costUsd: 0, agentCostUsd: 0 })
  for (let turn = 1; turn <= 5; turn++) {
    cost.told(turn * 0.25, false)
    t.equal(cost.totalUsd, turn * 0.25)
    cost = successor(cost)
  }
  t.end()
})

t.test('a session that goes on with somebody else’s counts what it cost itself', (t) => {
  const known = new SessionCost({ costUsd: 0 })
  known.startFrom(2)
  known.told(2.5, false)
  t.equal(known.totalUsd, 0.5)
  const replayed = new SessionCost({ costUsd: 0 })
  replayed.told(2, true)
  replayed.told(2.5, false)
  t.equal(replayed.totalUsd, 0.5)
  const unknown = new SessionCost({ costUsd: 0 })
  unknown.told(2.5, false)
  unknown.told(3, false)
  t.equal(unknown.totalUsd, 0.5, 'never more than it cost')
  t.end()
})

t.test('an agent that counts anew in each process is added up', (t) => {
  const first = new SessionCost({ costUsd: 0, agentCostUsd: 0 })
  first.told(0.5, false)
  const second = successor(first)
  second.told(0.25, false)
  t.equal(second.totalUsd, 0.75)
  t.end()
})

t.test('a cost that an earlier version wrote down is where it goes on from', (t) => {
  const cost = new SessionCost({ costUsd: 1.5 })
  cost.told(2, false)
  cost.told(2.25, false)
  t.equal(cost.totalUsd, 1.75)
  t.end()
})
