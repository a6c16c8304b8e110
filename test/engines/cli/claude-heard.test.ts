import { once } from 'node:events'
import { createInterface } from 'node:readline'
import t, { type Test } from 'tap'
import { heardBySdk } from '../../../src/engines/cli/claude/heard.js'
import { readingOf } from '../../../src/engines/cli/claude/readable.js'
import { AgentProcess } from '../../../src/engines/cli/process.js'

/** What the SDK reads of a program's output, and what it is told is wrong with that. */
async function heard(t: Test, program: string) {
  const agent = new AgentProcess({ command: process.execPath, args: ['-e', program], cwd: '/', env: {} })
  t.teardown(() => agent.stop(0))
  const problems: (string | undefined)[] = []
  const { stdout } = heardBySdk(agent, (said) => {
    const { message, problem } = readingOf(said)
    if (problem !== undefined) problems.push(problem)
    return message !== undefined
  })
  const pieces: Buffer[] = []
  stdout!.on('data', (piece: Buffer) => pieces.push(piece))
  await once(stdout!, 'end')
  return { lines: Buffer.concat(pieces).toString().split('\n'), problems }
}

const heardOf = (t: Test, said: unknown[]) =>
  heard(
    t,
    said.map((one) => `console.log(${JSON.stringify(typeof one === 'string' ? one : JSON.stringify(one))})`).join(';'),
  )

t.test('what an agent says comes to the SDK word for word, whatever the pieces that it is written in', async (t) => {
  const said = [
    'no JSON',
    '{"type":"assistant","text":"grüße 🎉 \u2028"}',
    '{"type":"system", "is_error":1 }',
    '',
    '{"open":',
  ]
  const bytes = JSON.stringify([...Buffer.from(said.join('\n'))])
  const program = `const fs = require("fs"); for (const byte of ${bytes}) fs.writeSync(1, Buffer.from([byte]))`
  t.strictSame(await heard(t, program), { lines: said, problems: [] })
})

t.test('a message that the SDK cannot read does not come to it', async (t) => {
  const { lines, problems } = await heardOf(t, [
    ...['null', '5', '[]', { type: 'control_response' }, { type: 'control_response', response: null }],
    { type: 'control_response', response: { request_id: 'x' } },
  ])
  t.strictSame(lines, ['{"type":"control_response","response":{"request_id":"x"}}', ''])
  t.equal(problems.length, 5)
})

t.test('a request in which nothing is asked comes to it as one that it refuses', async (t) => {
  const request = { type: 'control_request', request_id: 'x' }
  const { lines, problems } = await heardOf(t, [
    request,
    { ...request, request: null },
    { ...request, request: { subtype: 's' } },
  ])
  t.strictSame(
    lines.slice(0, -1).map((line) => JSON.parse(line).request),
    [{}, {}, { subtype: 's' }],
  )
  t.equal(problems.length, 2)
})

t.test('what asks for permission and does not say for which call is refused, too', async (t) => {
  const ask = { subtype: 'can_use_tool', tool_name: 'Bash', input: {}, tool_use_id: 't' }
  const asks = [ask, { ...ask, tool_name: 5 }, { ...ask, tool_use_id: undefined }]
  const { lines, problems } = await heardOf(
    t,
    asks.map((request) => ({ type: 'control_request', request_id: 'x', request })),
  )
  t.strictSame(
    lines.slice(0, -1).map((line) => JSON.parse(line).request),
    [ask, {}, {}],
  )
  t.equal(problems.length, 2)
})

t.test('the errors of a turn come to it as a list of texts', async (t) => {
  const failed = { type: 'result', subtype: 'error_during_execution', is_error: true }
  const told = [undefined, null, 'no', ['a', { b: 1 }], ['a']].map((errors) => ({ ...failed, errors }))
  const { lines } = await heardOf(t, [...told, { ...failed, subtype: 'success' }])
  t.strictSame(
    lines.slice(0, -1).map((line) => JSON.parse(line).errors),
    [[], [], ['no'], ['a', '{"b":1}'], ['a'], undefined],
  )
})

t.test('a line without an end ends what is read of it', async (t) => {
  const program = 'const mib = Buffer.alloc(1024 ** 2, 120); const say = () => process.stdout.write(mib, say); say()'
  await t.rejects(heard(t, program), { message: 'The agent wrote a line of more than 128 MiB, which is not read.' })
})

t.test('nor does it end anything else where that is read no more', async (t) => {
  const program = 'const mib = Buffer.alloc(1024 ** 2, 120); const say = () => process.stdout.write(mib, say); say()'
  const agent = new AgentProcess({ command: process.execPath, args: ['-e', program], cwd: '/', env: {} })
  t.teardown(() => agent.stop(0))
  const { stdout } = heardBySdk(agent, () => true)
  // as the SDK does where it has failed, while the agent has a moment to end
  createInterface({ input: stdout! }).close()
  await new Promise((done) => stdout!.once('close', done))
})

t.test('what nobody reads is left in the pipe', async (t) => {
  const program = 'const line = "x".repeat(1023) + "\\n"; const say = () => process.stdout.write(line, say); say()'
  const agent = new AgentProcess({ command: process.execPath, args: ['-e', program], cwd: '/', env: {} })
  t.teardown(() => agent.stop(0))
  const { stdout } = heardBySdk(agent, () => true)
  while (!agent.child.stdout.isPaused()) await new Promise(setImmediate)
  t.ok(agent.saidBytes < 1024 ** 2)
  stdout!.resume()
  while (agent.saidBytes < 2 * 1024 ** 2) await new Promise(setImmediate)
})
