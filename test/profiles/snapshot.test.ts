import { execFileSync } from 'node:child_process'
import { appendFileSync, linkSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import { type AgentRow, BUILT_IN_AGENTS } from '../../src/engines/cli/agent-table.js'
import { systemClock } from '../../src/lib/clock.js'
import { ConfigSnapshots } from '../../src/profiles/snapshot.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const claude = BUILT_IN_AGENTS.get('claude')!
const EMPTY = { hasUserMemory: false, skills: [], agents: [], commands: [] }

function write(root: string, files: Record<string, string>): string {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return root
}
const read = (directory: string, row: Pick<AgentRow, 'name' | 'snapshot'> = claude) =>
  new ConfigSnapshots(systemClock).read(directory, row)
const settingsOf = async (t: Test, text: string) => (await read(write(t.testdir(), { 'settings.json': text }))).settings

t.test('an empty directory, and none', async (t) => {
  t.strictSame(await read(t.testdir()), EMPTY)
  t.strictSame(await read(join(t.testdir(), 'gone')), EMPTY)
  t.strictSame(await read(join(write(t.testdir(), { file: '' }), 'file')), EMPTY)
})

t.test('what is shown of a claude directory', async (t) => {
  const directory = write(t.testdir(), {
    'settings.json': JSON.stringify({
      model: 'opus',
      permissions: {
        defaultMode: 'plan',
        allow: ['Bash(ls)', 'Read'],
        deny: ['WebFetch'],
        additionalDirectories: ['/x'],
      },
      env: { HTTPS_PROXY: 'http://u:secret@proxy', API_TIMEOUT_MS: '1' },
      hooks: { PreToolUse: [{ hooks: [{ type: 'command', command: 'secret' }] }], Stop: [] },
      apiKeyHelper: 'secret',
    }),
    'CLAUDE.md': '# Rules\nAnswer in French.\n',
    'skills/review/SKILL.md': 'secret',
    'skills/draft/notes.md': 'no skill',
    'skills/loose.md': 'no skill',
    'agents/critic.md': 'secret',
    'agents/readme.txt': 'no agent',
    'commands/ship.md': 'secret',
    'commands/git/tidy.md': 'secret',
    'commands/.hidden.md': '',
    'commands/.md': '',
  })
  t.strictSame(await read(directory), {
    settings: {
      model: 'opus',
      defaultPermissionMode: 'plan',
      permissionRules: { allow: 2, ask: 0, deny: 1 },
      envKeys: ['HTTPS_PROXY', 'API_TIMEOUT_MS'],
      hooks: ['PreToolUse', 'Stop'],
    },
    hasUserMemory: true,
    memory: { bytes: 26, preview: '# Rules\nAnswer in French.\n' },
    skills: ['review'],
    agents: ['critic'],
    commands: ['git:tidy', 'ship'],
  })
})

t.test('what is shown of each other agent', async (t) => {
  const cases: Record<string, { files: Record<string, string>; shows: object }> = {
    opencode: {
      files: {
        'opencode/opencode.json': JSON.stringify({
          model: 'acme/m',
          permission: {
            edit: 'ask',
            bash: { 'git *': 'allow', '*': 'deny', x: { y: 'allow' } },
            webfetch: 'allow',
            odd: 7,
          },
          provider: { acme: { options: { apiKey: 'secret' } } },
        }),
        'opencode/AGENTS.md': 'mem',
        'opencode/agent/old.md': '',
        'opencode/agents/new.md': '',
        'opencode/command/run.md': '',
        'opencode/skills/s/SKILL.md': '',
      },
      shows: {
        settings: { model: 'acme/m', permissionRules: { allow: 2, ask: 1, deny: 1 } },
        agents: ['new', 'old'],
        commands: ['run'],
        skills: ['s'],
      },
    },
    gemini: {
      files: {
        '.gemini/settings.json': JSON.stringify({
          model: { name: 'g-3' },
          general: { defaultApprovalMode: 'auto_edit' },
          hooks: { BeforeTool: [] },
          mcpServers: { x: { headers: { Authorization: 'secret' } } },
        }),
        '.gemini/GEMINI.md': 'mem',
        '.gemini/commands/git/commit.toml': 'prompt = "secret"',
        '.gemini/commands/other.md': '',
      },
      shows: {
        settings: { model: 'g-3', defaultPermissionMode: 'auto_edit', hooks: ['BeforeTool'] },
        commands: ['git:commit'],
      },
    },
    codex: {
      files: {
        'config.toml': [
          '# comment',
          'model = "gpt-x" # why',
          "approval_policy = 'on-request'",
          'notify = ["secret"]',
          '[model_providers.x]',
          'model = "secret"',
        ].join('\n'),
        'AGENTS.md': 'mem',
        'prompts/p.md': '',
        'agents/a.toml': '',
      },
      shows: { settings: { model: 'gpt-x', defaultPermissionMode: 'on-request' }, commands: ['p'], agents: ['a'] },
    },
    qwen: {
      files: {
        'settings.json': JSON.stringify({
          model: { name: 'q' },
          tools: { approvalMode: 'yolo' },
          env: { K: 'secret' },
        }),
        'QWEN.md': 'mem',
        'commands/a.md': '',
        'commands/b.toml': '',
        'commands/a.toml': '',
      },
      shows: { settings: { model: 'q', defaultPermissionMode: 'yolo', envKeys: ['K'] }, commands: ['a', 'b'] },
    },
  }
  for (const [name, { files, shows }] of Object.entries(cases)) {
    const shown = await read(write(join(t.testdir(), name), files), BUILT_IN_AGENTS.get(name)!)
    t.strictSame(shown, { ...EMPTY, hasUserMemory: true, memory: { bytes: 3, preview: 'mem' }, ...shows }, name)
  }
})

t.test('it is read afresh each time', async (t) => {
  const directory = write(t.testdir(), { 'CLAUDE.md': 'one' })
  const snapshots = new ConfigSnapshots(systemClock)
  t.equal((await snapshots.read(directory, claude)).memory?.preview, 'one')
  appendFileSync(join(directory, 'CLAUDE.md'), ' two')
  const shown = await snapshots.read(directory, claude)
  t.equal(shown.memory?.preview, 'one two')
  shown.skills.push('mine')
  t.same((await snapshots.read(directory, claude)).skills, [], 'and what is done with one changes no other')
})

t.test('settings that are no settings show nothing, and never throw', async (t) => {
  for (const text of ['', 'null', '[]', '"x"', '{', '{"__proto__": {"model": "x"}}', '['.repeat(200_000), '\0'])
    t.equal(await settingsOf(t, text), undefined, JSON.stringify(text.slice(0, 40)))
  t.strictSame(await settingsOf(t, '\ufeff{"model":"m"}'), { model: 'm' }, 'a byte order mark is none of it')
})

t.test('a value where a name belongs, or of another type, is not shown', async (t) => {
  const wrong: unknown[] = [7, true, null, ['x'], { x: 1 }, 'a\nb', 'ä', '', 'x'.repeat(201)]
  for (const model of wrong)
    t.strictSame(await settingsOf(t, JSON.stringify({ model })), {}, JSON.stringify(model).slice(0, 40))
  t.strictSame(await settingsOf(t, JSON.stringify({ env: ['SECRET=1'], hooks: 'secret', permissions: ['x'] })), {})
  const odd = { env: { 'A=secret': '', 'b c': '', OK: '' }, hooks: { 'rm -rf /': [], Ok: [] } }
  t.strictSame(await settingsOf(t, JSON.stringify(odd)), { envKeys: ['OK'], hooks: ['Ok'] })
  const inherited = JSON.parse('{"constructor":{"name":"x"}}')
  t.strictSame(await settingsOf(t, JSON.stringify(inherited)), {})
})

t.test('text inside a string of TOML is not taken for a setting', async (t) => {
  const codex = BUILT_IN_AGENTS.get('codex')!
  const directory = write(t.testdir(), { 'config.toml': 'developer_instructions = """\nmodel = "secret"\n"""\n' })
  t.strictSame((await read(directory, codex)).settings, {})
})

t.test('names are bounded in number and length, and are text', async (t) => {
  const directory = t.testdir()
  const commands = join(directory, 'commands')
  mkdirSync(commands)
  for (let index = 0; index < 300; index++) writeFileSync(join(commands, `c${index}.md`), '')
  writeFileSync(join(commands, `${'x'.repeat(200)}.md`), '')
  writeFileSync(join(commands, 'new\nline.md'), '')
  writeFileSync(Buffer.concat([Buffer.from(`${commands}/`), Buffer.from([0xff, 0xfe]), Buffer.from('.md')]), '')
  write(commands, { 'a/b/c/deep.md': '', 'a/b/c/d/deeper.md': '' })
  const shown = await read(directory)
  t.equal(shown.commands.length, 200)
  t.ok(shown.commands.every((name) => /^(c\d+|a:b:c:deep)$/.test(name)))
  t.same(shown.commands, [...shown.commands].sort())
})

t.test('a directory of very many entries ends the reading, not the gateway', async (t) => {
  const directory = t.testdir({ commands: {} })
  for (let index = 0; index < 6000; index++) writeFileSync(join(directory, 'commands', `c${index}`), '')
  write(directory, { 'CLAUDE.md': 'm' })
  t.strictSame(await read(directory), { ...EMPTY, hasUserMemory: true, memory: { bytes: 1, preview: 'm' } })
})

t.test('a huge file costs its head at most', async (t) => {
  const directory = write(t.testdir(), { 'CLAUDE.md': 'begin ', 'settings.json': '{"model":"m"}' })
  truncateSync(join(directory, 'CLAUDE.md'), 4 * 2 ** 30)
  truncateSync(join(directory, 'settings.json'), 4 * 2 ** 30)
  const shown = await read(directory)
  t.strictSame(shown, { ...EMPTY, hasUserMemory: true, memory: { bytes: 4 * 2 ** 30, preview: 'begin ' } })
})

t.test('a preview is cut between characters', async (t) => {
  const shown = await read(write(t.testdir(), { 'CLAUDE.md': '🥊'.repeat(2000) }))
  t.equal(shown.memory?.preview, '🥊'.repeat(500))
  const exact = await read(write(t.testdir(), { 'CLAUDE.md': `a${'é'.repeat(3000)}` }))
  t.equal(exact.memory?.preview, `a${'é'.repeat(499)}`)
  const escapes = await read(write(t.testdir(), { 'CLAUDE.md': '\u001b[31mred\u0007\r\n\ttab' }))
  t.equal(escapes.memory?.preview, '[31mred\n\ttab')
})

t.test('a pipe, a socket’s place or a directory in place of a file hangs nothing', async (t) => {
  const directory = t.testdir({ 'settings.json': {}, agents: '', commands: '' })
  execFileSync('mkfifo', [join(directory, 'CLAUDE.md'), join(directory, 'skills')])
  t.strictSame(await read(directory), EMPTY)
  const inside = t.testdir({ commands: {}, skills: { s: {} } })
  execFileSync('mkfifo', [join(inside, 'commands', 'pipe.md'), join(inside, 'skills', 's', 'SKILL.md')])
  t.strictSame(await read(inside), EMPTY)
})

t.test('no link is followed, inside or out, to a file or to a directory', async (t) => {
  const root = t.testdir()
  const outside = write(join(root, 'outside'), {
    'settings.json': '{"model":"secret"}',
    'CLAUDE.md': 'secret',
    'skills/secret/SKILL.md': '',
    'secret.md': '',
  })
  const direct = join(root, 'direct')
  mkdirSync(direct)
  for (const name of ['settings.json', 'CLAUDE.md', 'skills']) symlinkSync(join(outside, name), join(direct, name))
  symlinkSync(outside, join(direct, 'agents'))
  mkdirSync(join(direct, 'commands'))
  symlinkSync(join(outside, 'secret.md'), join(direct, 'commands', 'link.md'))
  symlinkSync(outside, join(direct, 'commands', 'folder'))
  symlinkSync('/dev/zero', join(direct, 'commands', 'zero.md'))
  t.strictSame(await read(direct), EMPTY)

  // One level up, where opening the file itself meets no link.
  const indirect = join(root, 'indirect')
  mkdirSync(indirect)
  symlinkSync(outside, join(indirect, '.gemini'))
  write(outside, { 'GEMINI.md': 'secret' })
  t.strictSame(await read(indirect, BUILT_IN_AGENTS.get('gemini')!), EMPTY)

  const loop = join(root, 'loop')
  mkdirSync(join(loop, 'commands'), { recursive: true })
  symlinkSync('.', join(loop, 'commands', 'again'))
  symlinkSync('CLAUDE.md', join(loop, 'CLAUDE.md'))
  t.strictSame(await read(loop), EMPTY)
})

t.test('the directory itself may be a link, and a file may have a second name', async (t) => {
  const root = t.testdir()
  const real = write(join(root, 'real'), { 'CLAUDE.md': 'mine' })
  linkSync(join(real, 'CLAUDE.md'), join(root, 'second'))
  symlinkSync(real, join(root, 'link'))
  t.equal((await read(join(root, 'link'))).memory?.preview, 'mine')
})

t.test('after two seconds there is an answer, with what was read by then, and one reading goes on', async (t) => {
  const directory = write(t.testdir(), { 'CLAUDE.md': 'm' })
  const clock = new VirtualClock()
  const snapshots = new ConfigSnapshots(clock)
  const answers = [snapshots.read(directory, claude), snapshots.read(directory, claude)]
  // Before the first call into the file system can have come back.
  void clock.advance(2000, { awaitsFiles: false })
  t.strictSame(await Promise.all(answers), [EMPTY, EMPTY])
  t.equal((await snapshots.read(directory, claude)).memory?.preview, 'm')
  t.equal(clock.pendingTimers, 0)
})
