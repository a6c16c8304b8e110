import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import type { Answer } from '../../client/index.js'
import { until } from '../fixtures/build.js'
import { attached, eventFrame, said } from '../fixtures/client-platform.js'
import { script } from '../fixtures/demo.js'
import { CTRL_C, CTRL_D, CTRL_Z, runPlain, Terminal } from '../fixtures/terminal.js'
import { asJob, skip, skipJobs, world } from '../fixtures/terminal-world.js'

const ID = 's'.repeat(36)
const BLUE: Answer = { answers: { 'Which colour do you like better?': 'Blue' } }

/** Answers what the one session that there is asks, as somebody who is not at the terminal. */
async function answerElsewhere(client: Awaited<ReturnType<typeof world>>['client'], answer: Answer): Promise<void> {
  const [session] = await client.sessions.list().toArray()
  const events = await client.sessions.events(session!.id).toArray()
  const { request } = events.find((event) => event.type === 'permission_requested')!
  await client.session(session!.id).answer(request.id, answer)
}

t.test('approvals are given with one key, from the first word to the file', { skip }, async (t) => {
  const { terminal, client } = await world(t)
  const screen = terminal(['run', 'Please write a report.'])
  await screen.shows('? Write report.md')
  await screen.shows('"content": "# Demonstration report')
  await screen.shows('[y] allow  [n] deny  [s] deny and stop')
  screen.press('y')
  await screen.shows('⎿ Wrote report.md')
  await screen.shows('[y] allow')
  screen.press('y')
  await screen.shows('⬇ report.md')
  await screen.shows('✓ done')
  t.equal(await screen.exited, 0)
  t.equal(screen.text.match(/I am the offline demonstration model/g)?.length, 1, 'what was typed is not said again')
  const [session] = await client.sessions.list().toArray()
  t.equal((await client.sessions.files(session!.id)).length, 1)
})

t.test('Ctrl-Z stops the job at a question, which is asked again when it goes on', { skip: skipJobs }, async (t) => {
  const { options } = await world(t)
  const { screen, stopAndGoOn } = await asJob(t, options, "run 'Please write a report.'")
  await screen.shows('[s] deny and stop')
  await stopAndGoOn()
  await screen.shows('? Write report.md')
  await screen.shows('[s] deny and stop')
  screen.press('n')
  await screen.shows('denied')
  await screen.shows('✓ done')
})

/** A terminal that is attached to a session which asks. */
async function attachedAtQuestion(t: Test) {
  const { terminal, client, options } = await world(t)
  const { stdout } = await runPlain(['run', '--detach', 'Please write a report.'], options)
  const id = stdout.trim()
  await until(async () => (await client.sessions.get(id)).status === 'awaiting_approval')
  const screen = terminal(['sessions', 'attach', id])
  await screen.shows('[s] deny and stop')
  return { screen, client, id }
}

t.test('Ctrl-D leaves an attached session also at a question, which waits for others then', { skip }, async (t) => {
  const { screen, client, id } = await attachedAtQuestion(t)
  screen.press(CTRL_D)
  t.equal(await screen.exited, 0)
  t.equal((await client.sessions.get(id)).status, 'awaiting_approval')
})

t.test('an answer that comes with Ctrl-Z leaves the terminal as it was', { skip }, async (t) => {
  const { screen } = await attachedAtQuestion(t)
  screen.press(`${CTRL_Z}s`)
  await screen.shows('denied')
  await screen.shows('■ interrupted')
  // in the mode in which keys are read one by one it would be a key
  screen.press(CTRL_C)
  await screen.shows('again to leave')
  screen.press(CTRL_D)
  t.equal(await screen.exited, 0)
})

t.test('a denial ends with its own exit code', { skip }, async (t) => {
  const { terminal } = await world(t)
  const screen = terminal(['run', 'Please write a report.'])
  await screen.shows('[n] deny')
  screen.press('n')
  await screen.shows('The report stays undone')
  t.equal(await screen.exited, 3)
})

t.test('what was typed before a question answers it not', { skip }, async (t) => {
  const { terminal } = await world(t)
  const screen = terminal(['run', 'Please write a report.'])
  screen.press('y')
  await screen.shows('[n] deny')
  screen.press('n')
  await screen.shows('The report stays undone')
  t.equal(await screen.exited, 3)
})

t.test('nor do the letters of a word that is written over it', { skip }, async (t) => {
  const { terminal, client } = await world(t)
  const screen = terminal(['run', 'Please write a report.'])
  await screen.shows('[n] deny')
  screen.press('please')
  await answerElsewhere(client, 'allow')
  await screen.shows('⎿ Wrote report.md')
})

t.test('questions are answered with one key', { skip }, async (t) => {
  const { terminal } = await world(t)
  const screen = terminal(['run', 'ask me a question'])
  await screen.shows('[2] Green')
  await screen.shows('[n] do not answer')
  screen.press('2')
  await screen.shows('You chose Green.')
  t.equal(await screen.exited, 0)
})

t.test('of more options than there are keys all are shown; words are added to what is chosen', { skip }, async (t) => {
  const { terminal } = await world(t)
  const options = Array.from({ length: 12 }, (_, n) => ({ label: `Number ${n + 1}` }))
  const question = { question: 'Which ones?', header: 'Numbers', options, multiSelect: true }
  const asks = { tool: 'AskUserQuestion', input: { questions: [question] } }
  const screen = terminal(['run', script({ tools: [asks] }, { text: 'Thank you.' })])
  await screen.shows('[9] Number 9')
  await screen.shows('[o] Number 12')
  await screen.shows('[n] do not answer')
  screen.press('1')
  await screen.shows('chosen: Number 1')
  screen.press('o')
  await screen.shows('Your answer')
  screen.press('Number 12\r')
  await screen.shows('"Which ones?":"Number 1, Number 12"')
  t.equal(await screen.exited, 0)
})

t.test('a long line of what is asked for leaves the question on the screen', { skip }, async (t) => {
  const { terminal } = await world(t)
  const content = '😀'.repeat(9000)
  const screen = terminal(['run', script({ tools: [{ tool: 'fs_write', input: { path: 'a.md', content } }] })])
  await screen.shows('more characters')
  await screen.shows('[n] deny')
  t.ok(screen.lines.slice(-39).some((line) => line.startsWith('? Write a.md')))
  t.notMatch(screen.text, /\ufffd/, 'no character is cut in two')
})

t.test('what is cut of an input is seen with a key, and the question is asked again', { skip }, async (t) => {
  const { terminal } = await world(t)
  const lines = Array.from({ length: 60 }, (_, n) => `echo ${n + 1}`)
  const content = [...lines, `${'#'.repeat(3000)} rm -rf`, '\u001b[2Kthe end'].join('\n')
  const screen = terminal(['run', script({ tools: [{ tool: 'fs_write', input: { path: 'a.sh', content } }] })])
  await screen.shows('more lines')
  await screen.shows('[y] allow  [n] deny  [s] deny and stop  [v] see all of it')
  // a key that is pressed with it is none for what nobody has seen yet
  screen.press('vy')
  await screen.shows('echo 60')
  await screen.shows('# rm -rf')
  await screen.shows('[2Kthe end')
  await screen.shows('? Write a.sh')
  await screen.shows('[y] allow  [n] deny  [s] deny and stop')
  t.notOk(screen.lines.at(-1)?.includes('[v]'), 'there is no more to see')
  screen.press('n')
  await screen.shows('denied')
  t.equal(await screen.exited, 3)
})

t.test('of an input that is short all is seen, and no more is offered', { skip }, async (t) => {
  const { terminal } = await world(t)
  const content = `cd C:\\new\nprintf 'a\\nb'`
  const screen = terminal(['run', script({ tools: [{ tool: 'fs_write', input: { path: 'a.sh', content } }] })])
  await screen.shows(String.raw`cd C:\\new`)
  await screen.shows(String.raw`printf 'a\\nb'`)
  await screen.shows('[s] deny and stop')
  screen.press('n')
  await screen.shows('denied')
  t.notMatch(screen.text, /see all/)
})

t.test('a key that is pressed while all of an input is shown answers nothing', { skip }, async (t) => {
  const { terminal, client } = await world(t)
  const content = Array.from({ length: 60 }, (_, n) => `line ${n + 1}`).join('\n')
  const screen = terminal(['run', script({ tools: [{ tool: 'fs_write', input: { path: 'a.md', content } }] })])
  await screen.shows('[v] see all of it')
  screen.press('v')
  await screen.shows('line 60')
  screen.press('n')
  await screen.shows('[s] deny and stop')
  await answerElsewhere(client, 'allow')
  await screen.shows('⎿ Wrote a.md')
})

t.test('who gives up an answer of their own is asked again, and has refused nothing', { skip }, async (t) => {
  const { terminal } = await world(t)
  const screen = terminal(['run', 'ask me a question'])
  await screen.shows('[n] do not answer')
  screen.press('o')
  await screen.shows('Your answer')
  screen.press(CTRL_C)
  await until(() => screen.text.split('[n] do not answer').length > 2, 'that it is asked again')
  screen.press('2')
  await screen.shows('You chose Green.')
  t.equal(await screen.exited, 0)
})

t.test('what somebody else answers is no longer asked', { skip }, async (t) => {
  const { terminal, client } = await world(t)
  const screen = terminal(['run', 'ask me a question'])
  await screen.shows('do not answer')
  await answerElsewhere(client, BLUE)
  await screen.shows('You chose Blue.')
  t.equal(await screen.exited, 0)
})

t.test(
  'who is writing an answer of their own when somebody else gives one is not told of a failure',
  { skip },
  async (t) => {
    const { terminal, client } = await world(t)
    const screen = terminal(['run', 'ask me a question'])
    await screen.shows('[o] something else')
    screen.press('o')
    await screen.shows('Your answer')
    await answerElsewhere(client, BLUE)
    await screen.shows('You chose Blue.')
    t.equal(await screen.exited, 0)
    t.notMatch(screen.text, /no such/)
  },
)

t.test('what was answered while the log was out of reach is no longer asked', { skip }, async (t) => {
  const followers: ServerResponse[] = []
  const commands: unknown[] = []
  let awake = () => {}
  const server = createServer(async (request, response) => {
    if (request.method === 'POST') {
      commands.push(JSON.parse(await text(request)).text)
      response.setHeader('content-type', 'application/json').end('{"ok":true}')
    } else if (request.url?.includes('/events')) {
      followers.push(response.writeHead(200, { 'content-type': 'text/event-stream' }))
    } else if (request.url === `/v1/sessions/${ID}`) {
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ id: ID, status: 'idle' }))
    } else response.writeHead(404).end()
    awake()
  })
  t.teardown(() => server.close().closeAllConnections())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const came = async (is: () => boolean) => {
    while (!is())
      await new Promise<void>((resolve) => {
        awake = resolve
      })
  }
  const say = (frames: object[]) => {
    for (const frame of frames) followers.at(-1)!.write(`data: ${JSON.stringify(frame)}\n\n`)
  }
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  const screen = new Terminal(t, ['sessions', 'attach', ID, '--url', url], { cwd: t.testdir() })
  await came(() => followers.length === 1)
  const request = { id: 'r1', toolUseId: 'u1', toolName: 'write', input: { path: 'a' } }
  say([attached(), { type: 'event', event: { type: 'permission_requested', seq: 1, ts: 1, request } }])
  say([{ type: 'synced', seq: 1 }])
  await screen.shows('[y] allow')
  followers[0]!.destroy()
  await came(() => followers.length === 2)
  say([attached({ epoch: 'e2', truncated: true, replayingFrom: 5 }), { type: 'synced', seq: 5 }])
  await screen.shows('no longer kept')
  say([eventFrame(said(6, 'It goes on.'))])
  await screen.shows('It goes on.')
  screen.press('Well done.\n')
  await came(() => commands.length > 0)
  t.strictSame(commands, ['Well done.'], 'the keyboard is for lines again')
  screen.press(CTRL_D)
  t.equal(await screen.exited, 0)
})

t.test('a session that ends while it asks ends what follows it', { skip }, async (t) => {
  const { terminal, client, options } = await world(t)
  const id = (await runPlain(['run', '--detach', 'Please write a report.'], options)).stdout.trim()
  const screen = terminal(['sessions', 'attach', id])
  await screen.shows('[y] allow')
  await client.sessions.remove(id)
  await screen.shows('The session was closed.')
  t.equal(await screen.exited, 0)
})
