import { existsSync, readFileSync } from 'node:fs'
import t from 'tap'
import { until } from '../fixtures/build.js'
import { CTRL_C, CTRL_D, Terminal } from '../fixtures/terminal.js'
import { asJob, skip, skipJobs, world } from '../fixtures/terminal-world.js'

const ESCAPE = '\u001b'
const CTRL_U = '\u0015'

t.test(
  'a prompt that is pasted is taken with all of its lines, and nothing of it answers anything',
  { skip },
  async (t) => {
    const { terminal, client } = await world(t)
    const screen = terminal(['run'])
    await screen.shows('What is to be done?')
    screen.press('Please write\ra report\ry\rand')
    await screen.shows('and')
    screen.press(' so on.\r')
    await screen.shows('[n] deny')
    screen.press('n')
    await screen.shows('The report stays undone')
    const [session] = await client.sessions.list().toArray()
    const [said] = await client.sessions.events(session!.id).toArray()
    t.match(said, { type: 'user_message', message: { content: 'Please write\na report\ny\nand so on.' } })
  },
)

t.test('lines that are pasted into a session are one message', { skip }, async (t) => {
  const { terminal, client, options } = await world(t)
  const { id } = await client.sessions.create({ cwd: options.cwd })
  const screen = terminal(['sessions', 'attach', id])
  await screen.shows('Type to talk')
  screen.press('First.\n\n  Second.\n')
  await screen.shows('> First.\n\n  Second.\n')
  await screen.shows('✓ done')
  screen.press(CTRL_D)
  t.equal(await screen.exited, 0)
  const said = (await client.sessions.events(id).toArray()).filter(({ type }) => type === 'user_message')
  t.equal(said.length, 1)
})

const noLinux = process.platform !== 'linux' && 'other systems cut lines elsewhere'
t.test('a line that the terminal has cut is not sent', { skip: skip || noLinux }, async (t) => {
  const { terminal, client, options } = await world(t)
  const { id } = await client.sessions.create({ cwd: options.cwd })
  const screen = terminal(['sessions', 'attach', id])
  await screen.shows('Type to talk')
  screen.press(`First.\n${'é'.repeat(2040)} and all that comes behind it.\n`)
  await screen.shows('Not sent: the terminal has cut a line at 4,095 bytes.')
  screen.press('Second.\n')
  await screen.shows('> Second.\n')
  await screen.shows('✓ done')
  screen.press(CTRL_D)
  t.equal(await screen.exited, 0)
  const said = (await client.sessions.events(id).toArray()).filter(({ type }) => type === 'user_message')
  t.equal(said.length, 1)
})

t.test(
  'what stands there without an Enter when a session is left is said not to have been sent',
  { skip },
  async (t) => {
    const { terminal, client, options } = await world(t)
    const { id } = await client.sessions.create({ cwd: options.cwd })
    const screen = terminal(['sessions', 'attach', id])
    await screen.shows('Type to talk')
    screen.press(`Half a thought${CTRL_D}${CTRL_D}`)
    t.equal(await screen.exited, 0)
    const [, ...shown] = screen.lines
    t.strictSame(shown, ['Half a thought', 'Not sent, as no Enter came behind it: Half a thought', ''])
    const events = await client.sessions.events(id).toArray()
    t.strictSame(
      events.filter(({ type }) => type === 'user_message'),
      [],
    )
  },
)

t.test('Ctrl-C, Ctrl-D and Escape leave where words are asked for', { skip }, async (t) => {
  const { terminal } = await world(t)
  for (const key of [CTRL_C, CTRL_D, ESCAPE]) {
    const screen = terminal(['run'])
    await screen.shows('What is to be done?')
    screen.press(key)
    await screen.shows('session-gateway: Left.')
    t.equal(await screen.exited, 130)
  }
  const screen = terminal(['run', 'ask me a question'])
  await screen.shows('[n] do not answer')
  screen.press('o')
  await screen.shows('Your answer')
  screen.press(CTRL_D)
  await until(() => screen.text.split('[n] do not answer').length > 2, 'that it is asked again')
  screen.press('2')
  await screen.shows('You chose Green.')
})

t.test('Ctrl-Z stops the job, and what was written is written on when it goes on', { skip: skipJobs }, async (t) => {
  const { options } = await world(t)
  const { screen, stopAndGoOn } = await asJob(t, options, 'run')
  await screen.shows('What is to be done?')
  await stopAndGoOn('Hel')
  await screen.shows('What is to be done? Hel')
  screen.press('lo, world\r')
  await screen.shows('Your message had 2 words')
})

t.test('login asks for an address and for a token that is not shown', { skip }, async (t) => {
  const { options } = await world(t)
  const cwd = t.testdir()
  const env = { ...options.env, SESSION_GATEWAY_CONFIG: `${cwd}/client.json` }
  const screen = new Terminal(t, ['login'], { cwd, env })
  await screen.shows(`Address of the gateway: ${env.SESSION_GATEWAY_URL}`)
  screen.press('\r')
  await screen.shows('Token')
  screen.press('not-to-be-seen\r')
  await screen.shows('Logged in to')
  t.equal(await screen.exited, 0)
  t.notMatch(screen.text, /not-to-be-seen/)
  t.equal(screen.text.match(/Token,/g)?.length, 1, 'it is asked for once')
  t.ok(existsSync(env.SESSION_GATEWAY_CONFIG))
})

t.test('login takes an address and a token that are pasted together', { skip }, async (t) => {
  const { options } = await world(t)
  const cwd = t.testdir()
  const env = {
    ...options.env,
    SESSION_GATEWAY_CONFIG: `${cwd}/client.json`,
    SESSION_GATEWAY_TOKEN: 'token-of-the-environment',
  }
  const screen = new Terminal(t, ['login'], { cwd, env })
  await screen.shows('Address of the gateway:')
  screen.press(`${CTRL_U}${env.SESSION_GATEWAY_URL}\rpasted-token\r`)
  await screen.shows(`Logged in to ${env.SESSION_GATEWAY_URL}. The token is`)
  t.equal(await screen.exited, 0)
  t.match(JSON.parse(readFileSync(env.SESSION_GATEWAY_CONFIG, 'utf8')), {
    url: env.SESSION_GATEWAY_URL,
    token: 'pasted-token',
  })
})

t.test('a token is asked for again when the job goes on', { skip: skipJobs }, async (t) => {
  const { options } = await world(t)
  const cwd = t.testdir()
  const env = { ...options.env, SESSION_GATEWAY_CONFIG: `${cwd}/client.json` }
  const { screen, stopAndGoOn } = await asJob(t, { cwd, env }, `login ${env.SESSION_GATEWAY_URL}`)
  await screen.shows('Token')
  await stopAndGoOn('not-to-')
  await screen.shows('Token, which is not shown')
  screen.press('be-seen\r')
  await screen.shows('Logged in to')
  t.notMatch(screen.text, /not-to-|be-seen/)
})
