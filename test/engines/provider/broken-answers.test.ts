import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { providerEngine } from '../../../src/engines/provider/engine.js'
import { script, startModelEndpoint } from '../../fixtures/model-endpoint.js'
import { open } from './host.js'

const openAt = async (t: Test, url: string, id = 'openai-compatible') => {
  const provider = { id, baseUrl: url, apiKeyEnv: 'KEY', model: 'fake' }
  const opened = await open(providerEngine({ env: { KEY: 'k' } }), { provider })
  t.teardown(() => opened.runner.close())
  return opened
}

for (const vendor of ['openai-compatible', 'anthropic'])
  t.test(`a connection to ${vendor} that breaks in an answer is told as that`, async (t) => {
    const endpoint = await startModelEndpoint(t)
    const { runner, host } = await openAt(t, endpoint.url, vendor)
    runner.send(script({ text: 'half an', hang: true }))
    const { drop } = await endpoint.request(1)
    await host.until(() => host.of('stream_delta').length > 1)
    drop()
    const end = await host.turn(1)
    t.match(end, { subtype: 'error_during_execution', errors: [/^The answer of the model broke off: (?!terminated)/] })
    t.match(host.of('assistant_message').at(-1)?.message.content, [{ type: 'text', text: 'half an' }])
  })

t.test('one that breaks before the first word is no success with the status of one', async (t) => {
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': nothing yet\n\n', () => request.socket.resetAndDestroy())
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const { runner, host } = await openAt(t, `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`)
  runner.send('hi')
  const { errors = [] } = await host.turn(1)
  t.match(errors, [/ECONNRESET|broke off|closed/])
  t.notMatch(errors[0], /HTTP 200|successful/)
})

for (const [body, told] of [
  ['data: {nonsense', 'The provider sent what is no JSON: {nonsense'],
  ['<html>Welcome!</html>', 'The answer of the model broke off.'],
] as const)
  t.test(`nor is what Anthropic's package makes of ${body}`, async (t) => {
    const server = createServer((request, response) => {
      request.resume().once('end', () => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        response.end(`${body}\n\n`)
      })
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    t.teardown(() => server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
    const { runner, host } = await openAt(t, url, 'anthropic')
    runner.send('hi')
    t.strictSame((await host.turn(1)).errors, [told])
  })

t.test('counts that can be none are nothing, and parts of a token are none', async (t) => {
  const { url } = await startModelEndpoint(t)
  const { runner, host } = await openAt(t, url)
  const details = { prompt_tokens_details: { cached_tokens: 0 } }
  runner.send(script({ text: 'hi', usage: { prompt_tokens: 1e300, completion_tokens: 12.5, ...details } }))
  const none = { inputTokens: 0, outputTokens: 0, cacheCreationTokens: 0, cacheReadTokens: 0 }
  t.strictSame((await host.turn(1)).usage, { ...none, outputTokens: 13 })
  runner.send(script({ text: 'hi', usage: { prompt_tokens: -7, completion_tokens: 5, ...details } }))
  t.strictSame((await host.turn(2)).usage, { ...none, outputTokens: 5 })
})

t.test('what is not of the protocol is told in a sentence, by its beginning, and without the key', async (t) => {
  const frames = ['{ "message": "gone, said KEYKEY" }', 'hello', `{ "choices": "${'nonsense'.repeat(1000)}" }`]
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`data: ${frames.shift()}\n\ndata: [DONE]\n\n`)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const provider = { id: 'openai-compatible', baseUrl, apiKeyEnv: 'KEY', model: 'fake' }
  const { runner, host } = await open(providerEngine({ env: { KEY: 'KEYKEY' } }), { provider })
  t.teardown(() => runner.close())
  runner.send('hi')
  const misfit = 'The provider sent what its protocol does not have: '
  t.strictSame((await host.turn(1)).errors, [`${misfit}{"message":"gone, said [redacted]"}`])
  runner.send('hi')
  t.strictSame((await host.turn(2)).errors, ['The provider sent what is no JSON: hello'])
  runner.send('hi')
  const [error = ''] = (await host.turn(3)).errors ?? []
  t.ok(error.startsWith(`${misfit}{"choices":"nonsense`) && error.length < 250, error)
})

t.test('the input of a call that is no JSON is not told again', async (t) => {
  const { url } = await startModelEndpoint(t)
  const { runner, host } = await openAt(t, url)
  const rawInput = `{ "path": "${'a'.repeat(1000)}`
  runner.send(script({ tools: [{ tool: 'fs_write', id: 'w1', rawInput }] }, { text: 'ok' }))
  t.equal((await host.turn(1)).result, 'ok')
  const { content, isError } = host.results.w1 ?? {}
  t.ok(isError)
  t.match(content, /^The call of fs_write is not valid: its input is no JSON: .{1,100}$/)
})
