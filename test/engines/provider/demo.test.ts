import t from 'tap'
import { createProviderRunner, providerEngine } from '../../../src/engines/provider/index.js'
import { script } from '../../fixtures/demo.js'
import { open } from './host.js'

const provider = { id: 'demo' }
const engine = providerEngine({ demoChunkDelayMs: 0 })

t.test('says what it is, streamed, with thinking and usage, the same each time', async (t) => {
  const say = async () => {
    const { runner, host } = await open(engine, { provider })
    runner.send('Hello there')
    const end = await host.turn()
    await runner.close()
    return { host, end }
  }
  const { host, end } = await say()
  t.match(host.events[0], { model: 'demo', apiKeySource: 'none' })
  t.match(end, { subtype: 'success', result: /offline demonstration model.*had 2 words/, totalCostUsd: 0 })
  t.ok(end.usage.inputTokens > 0 && end.usage.outputTokens > 0)
  t.match(host.of('assistant_message')[0]?.message.content, [{ type: 'thinking' }, { type: 'text' }])
  t.ok(host.of('stream_delta').length > 20)
  const again = await say()
  t.same(again.end, { ...end, durationMs: again.end.durationMs })
})

t.test('a report: thinking, a tool call that asks, a delivered file', async (t) => {
  const { runner, host } = await open(engine, { provider })
  t.teardown(() => runner.close())
  runner.send('Please write a report about boats')
  const write = await host.nextQuestion()
  t.match(write.ask, { toolName: 'fs_write', input: { path: 'report.md', content: /about boats/ } })
  write.answer({ behavior: 'allow', updatedInput: { ...write.ask.input, path: 'boats.md' } })
  const deliver = await host.nextQuestion()
  t.match(deliver.ask, { toolName: 'deliver_file', input: { path: 'boats.md' } })
  deliver.answer({ behavior: 'allow' })
  t.match(await host.turn(), { subtype: 'success', result: /Delivered boats\.md/, numTurns: 3 })
  const [file] = runner.files!.list()
  t.match(host.of('file_delivered'), [{ path: 'boats.md', bytes: file?.bytes, description: /report/ }])
  t.match(Buffer.from(runner.files!.read('boats.md')!).toString(), /^# Demonstration report/)
})

t.test('a report that is not allowed, and one in a session without deliver_file', async (t) => {
  const denied = await open(engine, { provider })
  denied.host.decide = () => ({ behavior: 'deny', message: 'no' })
  denied.runner.send('write a file')
  t.match(await denied.host.turn(), { subtype: 'success', result: 'The report stays undone. I was told: no' })

  const config = { permissionMode: 'bypassPermissions' as const }
  const bare = await open(engine, { provider, config, session: {} })
  bare.runner.send('write a file')
  t.match(await bare.host.turn(), { subtype: 'success', result: /Wrote report\.md/ })
  t.same(bare.host.of('file_delivered'), [])
})

t.test('a question, and what comes of the answer', async (t) => {
  const { runner, host } = await open(engine, { provider })
  runner.send('Ask me something')
  const { ask, answer } = await host.nextQuestion()
  const [question] = (ask.input as { questions: { question: string }[] }).questions
  answer({ behavior: 'allow', updatedInput: { ...ask.input, answers: { [question!.question]: 'Green' } } })
  t.match(await host.turn(), { result: /You chose Green/ })
  host.decide = () => ({ behavior: 'deny' })
  runner.send('one more question please')
  t.match(await host.turn(2), { subtype: 'success', result: /leave the colour open/ })
  t.equal(new Set(host.asked.map((asked) => asked.toolUseId)).size, 2)
})

t.test('a script decides what it answers', async (t) => {
  const { runner, host } = await open(engine, { provider })
  t.teardown(() => runner.close())
  runner.send(script({ thinking: 'hm', text: 'one', tools: [{ tool: 'fs_list', input: {} }] }, { text: 'two' }))
  t.match(await host.turn(), { subtype: 'success', result: 'two' })
  runner.send(script({ text: 'so', fail: 'the moon is in the way' }))
  t.match(await host.turn(2), { subtype: 'error_during_execution', errors: ['the moon is in the way'] })
  runner.send('@@[oops]@@')
  t.match(await host.turn(3), { subtype: 'error_during_execution' })
  runner.send(script({ text: 'wait', hang: true }))
  await host.until(() => host.of('stream_delta').some(({ delta }) => 'text' in delta && delta.text === 'wait'))
  await runner.interrupt()
  t.match(await host.turn(4), { subtype: 'interrupted' })
  t.match(host.of('assistant_message').at(-1)?.message.content, [{ type: 'text', text: 'wait' }])
})

t.test('the bundled runner serves it with nothing wired, at a readable pace', async (t) => {
  const { runner, host } = await open(createProviderRunner, { provider })
  t.match(host.events[0], {
    tools: ['AskUserQuestion', 'fs_list', 'fs_read', 'fs_write', 'deliver_file', 'download', 'web_fetch'],
  })
  runner.send('Hi')
  await host.until(() => host.of('stream_delta').length >= 2)
  await runner.interrupt()
  t.match(await host.turn(), { subtype: 'interrupted' })
  t.same(runner.capabilities, {
    permissionModes: ['default', 'bypassPermissions', 'dontAsk'],
    parking: 'native',
    setModel: true,
    resume: false,
    fork: false,
    files: true,
  })
})
