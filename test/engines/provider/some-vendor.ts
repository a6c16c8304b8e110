import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { providerEngine } from '../../../src/engines/provider/engine.js'
import { open } from './host.js'

/** An engine whose model is there. */
export const openAt = async (t: Test, url: string, id = 'openai-compatible', key = 'k') => {
  const provider = { id, baseUrl: url, apiKeyEnv: 'KEY', model: 'fake' }
  const opened = await open(providerEngine({ env: { KEY: key } }), { provider })
  t.teardown(() => opened.runner.close())
  return opened
}

/** A vendor that gives each request the next of these answers. */
export async function vendorThatSays(
  t: Test,
  answers: { status?: number; headers?: Record<string, string>; body: string }[],
) {
  const server = createServer((request, response) => {
    request.resume().once('end', () => {
      const { status = 200, headers, body } = answers.shift()!
      response.writeHead(status, { 'content-type': 'application/json', ...headers })
      response.end(body)
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}
