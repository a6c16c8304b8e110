import t, { type Test } from 'tap'
import { startAcp } from '../../fixtures/scripted-acp.js'

/** A runner of the scripted agent, under the name of the row that is to be applied to it; what it asks is allowed. */
async function start(t: Test, name: string) {
  const { runner, host } = await startAcp(t, { name, answer: () => ({ behavior: 'allow' }) })
  const interrupted = async (...steps: object[]) => {
    const [end, spoke] = [host.next('turn_completed'), host.next('stream_delta')]
    runner.send(JSON.stringify([...steps, { text: 'on' }, { hang: true }]))
    await spoke
    await runner.interrupt()
    return (await end).subtype
  }
  return { runner, host, interrupted }
}

const call = (toolCallId: string, status: string) => ({ toolCallId, title: toolCallId, status, rawInput: { n: 1 } })
const asked = {
  asks: { toolCall: call('asked', 'pending'), options: [{ optionId: 'once', name: 'Allow', kind: 'allow_once' }] },
}
const told = (id: string, status: string) => ({ raw: { sessionUpdate: 'tool_call', ...call(id, status) } })

t.test('of a call that ran when the turn was interrupted nobody says that it did nothing', async (t) => {
  const { runner, host, interrupted } = await start(t, 'scripted')
  t.equal(await interrupted(told('next', 'pending'), asked, told('running', 'in_progress')), 'interrupted')
  t.match(
    host.of('user_message').map(({ message }) => message.content),
    [
      [{ tool_use_id: 'asked', content: /may have taken effect/, is_error: true }],
      [{ tool_use_id: 'running', content: /may have taken effect/, is_error: true }],
    ],
  )
  t.notOk(runner.isSpent)
})

t.test('an agent whose commands run on is ended with one that is interrupted', async (t) => {
  const { runner, host, interrupted } = await start(t, 'codex')
  t.equal(await interrupted(told('next', 'pending')), 'interrupted')
  t.notOk(runner.isSpent, 'not where none runs')
  t.equal(await interrupted(asked), 'interrupted')
  t.ok(runner.isSpent, 'its successor goes on')
  t.strictSame(host.of('session_error'), [])
})

t.test('a call that was not allowed, of which the agent says no more than that it failed, says why', async (t) => {
  const { runner, host } = await start(t, 'scripted')
  host.answer = () => ({ behavior: 'deny' })
  const failed = { raw: { sessionUpdate: 'tool_call_update', toolCallId: 'asked', status: 'failed' } }
  await host.turn(runner, JSON.stringify([asked, failed]))
  t.match(
    host.of('user_message').map(({ message }) => message.content),
    [[{ tool_use_id: 'asked', content: 'The user does not allow this.', is_error: true }]],
  )
})

t.test('what an agent says of a call whose end was told makes no other call of it', async (t) => {
  const { host, runner, interrupted } = await start(t, 'scripted')
  const more = (id: string, status: string) => ({ raw: { sessionUpdate: 'tool_call_update', toolCallId: id, status } })
  await interrupted(told('running', 'in_progress'), told('done', 'completed'), more('done', 'failed'))
  await host.turn(runner, JSON.stringify([more('running', 'failed'), told('done', 'in_progress'), { text: 'said' }]))
  const blocks = host.events.flatMap((event) => {
    if (event.type !== 'assistant_message' && event.type !== 'user_message') return []
    const { content } = event.message
    if (typeof content === 'string') return []
    return content.map((block) =>
      'tool_use_id' in block ? `result ${block.tool_use_id}` : 'id' in block ? block.id : '',
    )
  })
  t.strictSame(
    blocks.filter((block) => block),
    ['running', 'done', 'result done', 'result running', 'done', 'result done'],
  )
})
