import t from 'tap'
import { wrongIn } from '../../../src/sessions/engine-events.js'
import { startRawAcp } from '../../fixtures/scripted-acp.js'

const hello = (more: object) => ({
  result: { protocolVersion: 1, agentCapabilities: { loadSession: true, ...(more as { can?: object }).can }, ...more },
})
const opened = (more: object) => ({
  result: { sessionId: 's', modes: { currentModeId: 'ask' }, ...more },
})
const options = (...configOptions: object[]) => opened({ configOptions })
const model = (more: object) => ({ type: 'select', id: 'model', currentValue: 'small', options: [], ...more })

for (const [what, answers, told] of [
  ['its version', { initialize: hello({ agentInfo: { version: 5 } }) }, {}],
  ['its logins', { initialize: hello({ authMethods: 5, agentInfo: null }) }, {}],
  ['which model it uses', { 'session/new': options(model({ currentValue: 5 })) }, {}],
  ['which it uses of an earlier kind', { 'session/new': opened({ models: { currentModelId: {} }, modes: 'x' }) }, {}],
  [
    'the names of its models',
    {
      'session/new': options(
        model({ options: [{ value: 5 }, { value: 'small' }, { value: 'l', name: [], description: {} }] }),
      ),
    },
    {
      models: [
        { value: 'small', displayName: 'small' },
        { value: 'l', displayName: 'l' },
      ],
    },
  ],
] as [string, Record<string, object>, object][])
  t.test(`an agent that tells ${what} in the wrong type is open all the same`, async (t) => {
    const { runner, host } = await startRawAcp(t, answers)
    t.match(host.of('system_init'), [{ sdkSessionId: 's' }])
    if ('models' in told) t.strictSame(host.of('capabilities').at(-1)?.models, told.models)
    t.strictSame(host.events.filter(wrongIn), [])
    t.match(await host.turn(runner, '[]'), { subtype: 'success' })
  })

t.test('a login that is offered in no words is none', async (t) => {
  const answers = {
    initialize: hello({ authMethods: [null] }),
    'session/new': { error: { code: -32000, message: 'Sign in' } },
  }
  await t.rejects(startRawAcp(t, answers), {
    code: 'SG_ERR_ENGINE_START',
    message:
      'The agent is not logged in: Sign in. Log in with the agent itself, or name one of its methods in agents[].auth: it offers none.',
  })
})

for (const sessions of [undefined, null, 5, [null, 5, { sessionId: 7 }]])
  t.test(
    `what an agent lists is not taken for its sessions where it is none: ${JSON.stringify(sessions)}`,
    async (t) => {
      const answers = {
        initialize: hello({ can: { sessionCapabilities: { list: {} } } }),
        'session/load': { error: { code: -32603, message: 'busy' } },
        'session/list': { result: { sessions } },
      }
      const state = {
        agent: 'scripted',
        sdkSessionId: 's',
        permissionMode: 'default',
        isFresh: false,
        numTurns: 1,
        costUsd: 0,
      }
      const started = startRawAcp(t, answers, { restore: { engine: 'cli', state } })
      await t.rejects(started, { message: /could not open the session: busy/ })
    },
  )
