import { spawnSync } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import stringWidth from 'string-width'
import t from 'tap'
import { until } from '../fixtures/build.js'
import { script } from '../fixtures/demo.js'
import { CTRL_C, CTRL_D, runPlain, Terminal } from '../fixtures/terminal.js'
import { skip, world } from '../fixtures/terminal-world.js'

t.test('whoever waits for a job is told that the gateway is away', { skip }, async (t) => {
  const { terminal, daemon, client } = await world(t)
  const waiting = terminal(['jobs', 'submit', '--wait', script({ hang: true })])
  await waiting.shows('Job ')
  const watching = terminal(['jobs', 'watch', '--output', 'jsonl'])
  const [job] = await client.jobs.list().toArray()
  // what is told of once it watches
  await until(async () => {
    await client.jobs.submit({ session: { cwd: job!.cwd, prompt: 'Next' } })
    return watching.text.includes('"job_submitted"')
  })
  const board = terminal(['jobs', 'watch'])
  await board.shows('1/1 running')
  daemon.child.kill('SIGKILL')
  for (const screen of [waiting, watching, board]) await screen.shows('The connection is lost. Trying again')
})

t.test('Ctrl-C ends the turn, twice leaves, and the session is still there', { skip }, async (t) => {
  const { terminal, client } = await world(t)
  const screen = terminal(['run', script({ text: 'For ever.', hang: true })])
  await screen.shows('For ever.')
  screen.press(CTRL_C)
  await screen.shows('■ interrupted')
  t.equal(await screen.exited, 130)
  t.equal(screen.text.match(/For ever\./g)?.length, 1)

  const asking = terminal(['run', 'Please write a report.'])
  await asking.shows('[y] allow')
  asking.press(CTRL_C)
  await asking.shows('■ interrupted')
  t.equal(await asking.exited, 130, 'also where a key is waited for')

  const [session] = await client.sessions.list().toArray()
  const idle = terminal(['sessions', 'attach', session!.id.slice(0, 8)])
  await idle.shows('> Please write a report.')
  await idle.shows('■ interrupted')
  idle.press(CTRL_C)
  await idle.shows('again to leave')
  // long ago, for whoever has said something since
  idle.press(`${script({ text: 'On and on.', hang: true })}\n`)
  await idle.shows('\nOn and on.')
  idle.press(CTRL_C)
  await idle.shows('■ interrupted')
  idle.press(CTRL_C)
  await idle.shows('again to leave')
  idle.press(CTRL_C)
  await idle.shows('The session is still there.')
  t.equal(await idle.exited, 130)
  t.equal((await client.sessions.get(session!.id)).status, 'idle')
})

t.test('one leaves and comes back, and talks on', { skip }, async (t) => {
  const { terminal, client, options } = await world(t)
  const { stdout } = await runPlain(['run', '--detach', 'Please write a report.'], options)
  const id = stdout.trim()
  await until(async () => (await client.sessions.get(id)).status === 'awaiting_approval')
  const first = terminal(['sessions', 'attach', id.slice(0, 8)])
  await first.shows('[y] allow')
  first.press('y')
  await first.shows('The file is written')
  await first.shows('[y] allow')
  first.press(CTRL_C)
  await first.shows('■ interrupted')
  first.press(CTRL_D)
  t.equal(await first.exited, 0)
  const second = terminal(['sessions', 'attach', id.slice(0, 8)])
  await second.shows('> Please write a report.')
  await second.shows('The file is written')
  await second.shows('■ interrupted')
  t.notMatch(second.text, /\[y\] allow/, 'what is answered is not asked again')
  second.press(`${script({ text: 'And so on.' })}\n`)
  await second.shows('And so on.\n')
  await second.shows('✓ done')
  second.press(CTRL_D)
  t.equal(await second.exited, 0)
})

t.test('a line is rendered once it is whole, on a narrow terminal and on a wide one', { skip }, async (t) => {
  const { terminal } = await world(t)
  const text = `# A heading\n\nSome **bold words** that make this line longer than a narrow terminal is wide, \`code\` too.\n- one`
  for (const columns of [30, 200]) {
    const screen = terminal(['run', script({ text })], columns)
    await screen.shows('✓ done')
    t.equal(await screen.exited, 0)
    t.match(screen.text, /A heading\n/)
    // the line as it was typed is still among what was written
    t.match(screen.text, /Some bold words that make this line longer than a narrow terminal is wide, code too\.\n/)
    t.match(screen.text, /• one\n/)
  }
  const narrow = terminal(['sessions', 'ls'], 50)
  t.equal(await narrow.exited, 0)
  for (const line of narrow.text.split('\n')) t.ok(line.length <= 50, line)
})

t.test('no line stands twice on a small terminal, nor any part of one', { skip }, async (t) => {
  const { terminal } = await world(t)
  const texts = {
    'longer than the screen': `**Ja** ${'ja '.repeat(90)}nein`,
    'with tabs': '\ta\tb**c**and more',
    'of characters that take two columns': `**日**${'本'.repeat(60)}`,
  }
  for (const [what, text] of Object.entries(texts)) {
    // it is shown as it is written, also by whoever comes later
    const screen = terminal(['run', script({ text: `${text}\nNext.`, hang: true })], 21, 10)
    await screen.shows('Next.')
    const lines = screen.lines.join('').replace(/ +/g, '')
    const letters = text.replace(/[*\s]/g, '')
    t.match(lines.replaceAll('*', ''), new RegExp(`[0-9a-f]{4}${letters}Next`), what)
  }
})

t.test('a terminal that does not tell its size is asked and answered all the same', { skip }, async (t) => {
  const { terminal, client, options } = await world(t)
  const asking = terminal(['run'], 0, 0)
  await asking.shows('What is to be done?')
  asking.press('Hello\r')
  await asking.shows('✓ done')
  t.equal(await asking.exited, 0)
  await client.jobs.submit({ session: { cwd: options.cwd, prompt: script({ hang: true }) } })
  await terminal(['jobs', 'watch'], 0, 0).shows('1/1 running')
})

t.test('a table fits a narrow terminal also where characters are two columns wide', { skip }, async (t) => {
  const { terminal, client, options } = await world(t)
  const titles = ['四半期報告書を作成してください'.repeat(3), '👩‍👩‍👧‍👦'.repeat(40), 'plain words '.repeat(9)]
  for (const title of titles) await client.sessions.create({ cwd: options.cwd, title })
  const narrow = terminal(['sessions', 'ls'], 60)
  t.equal(await narrow.exited, 0)
  const lines = narrow.text.split('\n')
  for (const line of lines) t.ok(stringWidth(line) <= 60, line)
  t.notMatch(narrow.text, /\ufffd|\u200d…/, 'no character is cut in two')
  for (const title of titles)
    t.ok(
      lines.some((line) => line.includes(title.slice(0, 11))),
      title,
    )
})

t.test('the board shows the jobs as they go', { skip }, async (t) => {
  const { terminal, client, options } = await world(t)
  const board = terminal(['jobs', 'watch'])
  await board.shows('0/1 running')
  const job = await client.jobs.submit({
    session: { cwd: options.cwd, prompt: script({ text: 'A word.', hang: true }) },
  })
  await board.shows('1/1 running')
  await board.shows(job.id.slice(0, 8))
  const one = terminal(['jobs', 'watch', job.id])
  await one.shows('1/1 running')
  one.press(CTRL_C)
  await one.shows('The job goes on without you')
  t.equal(await one.exited, 130)
  await client.jobs.cancel(job.id)
  await board.shows('1/1')
  await board.shows('canceled')
  board.press(CTRL_C)
  t.equal(await board.exited, 0)
})

t.test('the board shows what runs first, also where more waits than it has lines', { skip }, async (t) => {
  const { terminal, client, options } = await world(t)
  const submit = (prompt: string) => client.jobs.submit({ session: { cwd: options.cwd, prompt } })
  const running = await submit(script({ text: 'A word.', hang: true }))
  await until(async () => (await client.jobs.get(running.id)).status === 'running')
  for (let waiting = 0; waiting < 59; waiting++) await submit(script({ text: 'Later.' }))
  const last = await submit(script({ text: 'Last.' }))
  const board = terminal(['jobs', 'watch'])
  await board.shows(last.id.slice(0, 8))
  const shown = board.text
  t.match(shown, new RegExp(`${running.id.slice(0, 8)} +running`))
  board.press(CTRL_C)
  t.equal(await board.exited, 0)
})

t.test('every command tells what it takes, with an example', async (t) => {
  const cwd = t.testdir()
  const { stdout } = await runPlain(['--help'], { cwd })
  for (const command of [
    'run',
    'sessions',
    'jobs',
    'approvals',
    'profiles',
    'executions',
    'open',
    'login',
    'completion',
  ])
    t.match(stdout, RegExp(`^ {2}${command}\\b`, 'm'))
  for (const command of [
    ['run'],
    ['sessions', 'pull'],
    ['jobs', 'submit'],
    ['approvals', 'allow'],
    ['login'],
    ['completion'],
  ])
    t.match((await runPlain([...command, '--help'], { cwd })).stdout, /\nExamples:\n {2}\S/, command.join(' '))
})

t.test('shells complete commands and flags', async (t) => {
  const cwd = t.testdir()
  const { stdout: bash } = await runPlain(['completion', 'bash'], { cwd })
  const completed = (...words: string[]) =>
    spawnSync(
      'bash',
      [
        '-c',
        `${bash}\nCOMP_WORDS=(session-gateway ${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length}; _session_gateway; printf '%s\\n' "\${COMPREPLY[@]}"`,
      ],
      { encoding: 'utf8' },
    )
      .stdout.split('\n')
      .filter(Boolean)
  t.strictSame(completed('ses'), ['sessions'])
  t.strictSame(completed('sessions', 'r'), ['rename', 'rm'])
  t.strictSame(completed('jobs', 'submit', '--max'), ['--max-tokens', '--max-duration'])
  t.strictSame(completed('sessions', 'ls', '--output', 'json', '--st'), ['--status'], 'also after what a flag takes')
  t.strictSame(completed('sessions', 'attach', '1f3a', '--fr'), ['--from'], 'and after an argument')
  t.strictSame(completed('--config', 'x', 'sessions', 'r'), ['rename', 'rm'])
  t.strictSame(completed('sessions', 'ls', '--output', 'json'), ['json', 'jsonl'], 'what a flag takes')
  t.strictSame(completed('sessions', 'ls', '--output', '=', 't'), ['table'])
  t.strictSame(completed('jobs', 'ls', '--status', '='), [
    'queued',
    'running',
    'parked',
    'succeeded',
    'failed',
    'canceled',
  ])
  t.strictSame(completed('run', '--mode', 'by'), ['bypassPermissions'])
  t.strictSame(completed('--log-level', 'f'), ['fatal'])
  t.strictSame(completed('completion', ''), ['bash', 'zsh', 'fish', '--help'], 'and what an argument is one of')
  t.notOk(completed('run', '--profile', '').includes('--help'), 'what has no choice is no flag')
  await t.test('bash completes names of files as it does itself', { skip }, async (t) => {
    const cwd = t.testdir({ 'my work': { 'a b.md': '' }, 'plain.json': '{}', 'completion.bash': bash })
    const shell = new Terminal(t, ['--norc', '--noprofile', '-i'], { cwd, env: { HOME: cwd }, command: ['bash'] })
    shell.press(
      "session-gateway() { printf '<%s>' \"$@\"; echo; }; PS1=''; source ./completion.bash; echo is-''loaded\n",
    )
    await shell.shows('is-loaded')
    shell.press('session-gateway run --cwd my\ta\t\n')
    await shell.shows('<run><--cwd><my work/a b.md>')
    shell.press('session-gateway check pl\t\n')
    await shell.shows('<check><plain.json>')
    shell.press('session-gateway sessions pl\t\n')
    await shell.shows('<sessions><pl>')
    shell.press('exit\n')
    t.equal(await shell.exited, 0)
  })
  const zsh = '/usr/bin/zsh'
  const noZsh = !existsSync(zsh) && 'zsh is not installed'
  await t.test('zsh completes with it', { skip: noZsh || skip }, async (t) => {
    const { stdout } = await runPlain(['completion', 'zsh'], { cwd })
    writeFileSync(join(cwd, 'completion.zsh'), stdout)
    const shell = new Terminal(t, ['-f', '-i'], { cwd, env: { HOME: cwd }, command: [zsh] })
    // what the line has become once it is entered
    shell.press("session-gateway() { print -r -- \"<$*>\" }; PS1='' PS2=''; autoload -U compinit && compinit -D -u\n")
    shell.press("source ./completion.zsh && print is-''loaded\n")
    await shell.shows('is-loaded')
    shell.press('session-gateway ses\t\n')
    await shell.shows('<sessions>')
    shell.press('session-gateway sessions r\t')
    await shell.shows('rename')
    await shell.shows('rm')
    shell.press('e\t\n')
    await shell.shows('<sessions rename>')
    shell.press('session-gateway jobs submit --max\t\t')
    await shell.shows('--max-duration')
    await shell.shows('--max-tokens')
    shell.press('t\t\n')
    await shell.shows('<jobs submit --max-tokens>')
    shell.press('session-gateway sessions attach 1f3a --fr\t\n')
    await shell.shows('<sessions attach 1f3a --from>')
    shell.press('session-gateway sessions ls --status aw\t\n')
    await shell.shows('<sessions ls --status awaiting_approval>')
    shell.press('session-gateway sessions ls --output=ta\t\n')
    await shell.shows('<sessions ls --output=table>')
    shell.press('session-gateway check completion.z\t\n')
    await shell.shows('<check completion.zsh>')
    shell.press('exit\n')
    t.equal(await shell.exited, 0)
  })
  const hasFish = existsSync('/usr/bin/fish')
  await t.test('fish completes with it', { skip: !hasFish && 'fish is not installed' }, async (t) => {
    const { stdout: script } = await runPlain(['completion', 'fish'], { cwd })
    const offered = (line: string) => {
      const look = `complete -C "session-gateway ${line}"`
      const { stdout, stderr } = spawnSync('fish', ['--no-config', '-c', `${script}\n${look}`], { encoding: 'utf8' })
      // it would stand in the line that is being written
      t.equal(stderr, '', line)
      return stdout.split('\n').flatMap((one) => one.split('\t')[0] || [])
    }
    t.same(offered('ses'), ['sessions'])
    t.same(offered('sessions r'), ['rename', 'rm'])
    t.same(offered('jobs submit --max'), ['--max-duration', '--max-tokens'])
    t.same(offered('sessions attach 1f3a --fr'), ['--from'])
    t.same(offered('--config x sessions r'), ['rename', 'rm'])
    t.same(offered('sessions ls --output js'), ['json', 'jsonl'])
    t.same(offered('sessions ls --output=ta'), ['--output=table'])
    t.same(offered('completion f'), ['fish'])
  })
  t.match(await runPlain(['completion', 'csh'], { cwd }), { code: 2 })
})
