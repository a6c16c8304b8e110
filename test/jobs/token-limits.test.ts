import t from 'tap'
import { providerEngine } from '../../src/engines/provider/index.js'
import { SOME_CWD, until } from '../fixtures/build.js'
import { buildJournaled } from '../fixtures/journaled.js'
import { script, startModelEndpoint } from '../fixtures/model-endpoint.js'

t.test('no model call and no tool follows the call that used too much, however long the storage takes', async (t) => {
  const model = await startModelEndpoint(t)
  const provider = { id: 'anthropic', baseUrl: model.url, model: 'fake-claude' }
  const { gateway, journal } = await buildJournaled(t, {
    queue: {},
    profiles: [{ name: 'fake', engine: 'provider', provider }],
    createEngineRunner: providerEngine({ env: { ANTHROPIC_API_KEY: 'sk-dummy' } }),
  })
  const list = { tools: [{ tool: 'fs_list', input: {} }] }
  const prompt = script(list, list, list, list, { text: 'Done.' })
  // each call uses 1550
  const { id } = await gateway.queue!.submit({ session: { cwd: SOME_CWD, prompt }, maxTokens: 2000 })
  await model.request(1)
  journal.hold()
  await until(async () => (await gateway.registry.list())[0]?.status === 'idle', 'the end of the turn')
  t.equal(model.requests.length, 2)
  journal.release()
  await until(async () => (await gateway.queue!.get(id))?.status === 'failed', 'the end of the job')
  const job = await gateway.queue!.get(id)
  t.match(job, { error: 'The run used more than 2000 tokens.', usage: { tokens: 3100 } })
  t.equal(job?.result?.subtype, 'interrupted')
})
