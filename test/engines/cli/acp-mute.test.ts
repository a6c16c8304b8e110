import t from 'tap'
import { processesOf } from '../../fixtures/processes.js'
import { script, startRawAcp } from '../../fixtures/scripted-acp.js'

const CLOSED_OUTPUT = 'The agent closed its standard output, did not end within 3 s, and was ended.'
const CLOSED_INPUT = /^The agent closed its standard input, did not end within 3 s, and was ended\./

for (const method of ['initialize', 'session/new', 'session/set_mode'])
  for (const [does, message] of [
    ['mute', CLOSED_OUTPUT],
    ['exit', 'The agent exited with code 3.'],
  ] as const)
    t.test(
      `the start of one that is to answer ${method} and does not (${does}) is refused with how it ended`,
      async (t) => {
        const modes = { default: 'edit' }
        await t.rejects(startRawAcp(t, { [method]: does }, { modes }), { code: 'SG_ERR_ENGINE_START', message })
        t.strictSame(processesOf('session-1'), [])
      },
    )

const asks = {
  ...{ jsonrpc: '2.0', id: 'q', method: 'session/request_permission' },
  params: {
    ...{ sessionId: 's', toolCall: { toolCallId: 'c', title: 'x' } },
    options: [{ optionId: 'y', name: 'Yes', kind: 'allow_once' }],
  },
}

for (const [does, message] of [
  ['mute', CLOSED_OUTPUT],
  ['exit', 'The agent exited with code 3.'],
] as const)
  t.test(
    `one that asks and then does not wait for the answer (${does}) is ended, and its session with it`,
    async (t) => {
      const { runner, host } = await startRawAcp(t)
      const died = host.next('session_error')
      runner.send(script(asks, { does }))
      t.match(await died, { message, code: 'SG_ERR_ENGINE_FAILED' })
      t.equal(host.asks.length, 1)
      t.strictSame(host.of('turn_completed'), [])
      t.strictSame(processesOf('session-1'), [])
    },
  )

t.test('one that closes its standard input is ended once it is told something', async (t) => {
  const { runner, host } = await startRawAcp(t)
  t.match(await host.turn(runner, script({ does: 'unhears' })), { subtype: 'success' })
  const died = host.next('session_error')
  runner.send('[]')
  t.match(await died, { message: CLOSED_INPUT, code: 'SG_ERR_ENGINE_FAILED' })
  t.strictSame(host.of('turn_completed').length, 1)
  t.strictSame(processesOf('session-1'), [])
})
