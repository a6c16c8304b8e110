import t from 'tap'
import { buildServer, SOME_CWD, until } from '../fixtures/build.js'

const profile = (name: string) => ({ name, engine: 'provider' as const, provider: { id: 'x' } })
const result = { status: 'ok', output: { type: 'text', value: 'done' } }

t.test('a stranger’s result settles nothing, and the one that counts is still taken', async (t) => {
  const { call, engine } = await buildServer(t, {
    profiles: [profile('theirs'), profile('mine')],
    script: { capabilities: { parking: 'native' } },
    authenticate: ({ headers }) => ({ allowedProfiles: [String(headers.caller)] }),
  })
  const theirs = { caller: 'theirs' }
  const { json } = await call('POST', '/sessions', { cwd: SOME_CWD, profile: 'theirs', prompt: 'go' }, theirs)
  for (const state of ['live', 'parked']) {
    const executionId = `e-${state}`
    const path = `/executions/${executionId}/result`
    if (state === 'live') await engine.last.host.deferExecution({ executionId, toolName: 'elsewhere' })
    else {
      await engine.last.defer(executionId)
      await until(async () => (await call('GET', `/sessions/${json.id}`, undefined, theirs)).json.status === 'parked')
    }
    const runners = engine.runners.length
    const foreign = await call('POST', path, result, { caller: 'mine' })
    const unknown = await call('POST', '/executions/nowhere/result', result, { caller: 'mine' })
    t.equal(foreign.status, 404, state)
    const said = ({ text }: { text: string }) => text.replace(/"instance":"[^"]*"/, '')
    t.equal(said(foreign), said(unknown), `${state}: as if it were unknown`)
    t.equal(engine.runners.length, runners, `${state}: nothing woke`)
    t.same(engine.last.settled, [], `${state}: no engine heard of it`)
    t.match(await call('POST', path, result, theirs), { status: 200, json: { applied: true, sessionId: json.id } })
    await until(() => engine.last.settled.length === 1)
    t.match(engine.last.settled.pop(), { executionId })
  }
})
