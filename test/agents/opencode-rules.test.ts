import { existsSync, mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import t, { type Test } from 'tap'
import type { PermissionMode } from '../../schemas/permissions.js'
import { cliEngine } from '../../src/engines/cli/index.js'
import { ScriptedHost } from '../fixtures/scripted-host.js'
import { AGENTS, type AgentUnderTest } from './installed.js'
import { type Answer, script, startVendors } from './vendors.js'

/** What the operator's own configuration says: that all may run, and that language servers and formatters help. */
const OWN = {
  permission: { '*': 'allow', bash: 'allow', edit: { '*': 'allow' } },
  agent: { plan: { permission: { '*': 'allow', bash: { '*': 'allow' }, edit: 'allow' } } },
  lsp: true,
  formatter: true,
}
/** A repository whose language server and formatter are its own. */
const repository = (mark: string) => ({
  'a.ts': 'export const a = 1\n',
  'biome.json': '{}',
  'package.json': JSON.stringify({ devDependencies: { '@biomejs/biome': '1', prettier: '1', typescript: '1' } }),
  'package-lock.json': '{}',
  'node_modules/.bin/biome': `#!/bin/sh\ntouch ${mark}-biome\nexec cat\n`,
  'node_modules/.bin/prettier': `#!/bin/sh\ntouch ${mark}-prettier\n`,
  '.git/HEAD': 'ref: refs/heads/main\n',
  ...{ '.git/config': '', '.git/objects/.keep': '', '.git/refs/.keep': '' },
})

/** An agent whose own configuration allows everything, at work. @returns what was asked and where its work lies */
async function work(t: Test, agent: AgentUnderTest, mode: PermissionMode, calls: Answer[], trustWorkspace = false) {
  const vendors = await startVendors(t)
  const home = realpathSync(mkdtempSync(join(tmpdir(), `${agent.name}-rules-`)))
  const [cwd, mark] = [join(home, 'work'), join(home, 'mark')]
  const write = (folder: string, files: Record<string, string>, fileMode: number) => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true })
      writeFileSync(join(folder, path), text, { mode: fileMode })
    }
  }
  const own = { [`config/${agent.name}/${agent.name}.json`]: JSON.stringify(OWN) }
  write(home, { ...agent.files(vendors.url), ...own }, 0o644)
  write(cwd, repository(mark), 0o755)
  const env = { PATH: process.env.PATH!, HOME: home, ...agent.env(home, vendors.url) }
  const runner = await cliEngine({ agents: [agent.declaration], env })({
    ...{ sessionId: crypto.randomUUID(), bridge: { execute: () => Promise.reject(new Error('not here')) } },
    profile: { name: agent.name, engine: 'cli', agent: agent.name, trustWorkspace },
    config: { cwd, permissionMode: mode },
  })
  const host = new ScriptedHost()
  try {
    await runner.start(host)
    await host.turn(runner, script(...calls, { text: 'done' }))
  } finally {
    await runner.close()
  }
  return { host, cwd, ran: ['biome', 'prettier'].filter((name) => existsSync(`${mark}-${name}`)) }
}

for (const agent of [AGENTS.opencode, AGENTS.kilo] as AgentUnderTest[])
  t.test(`${agent.name}, whose own configuration allows everything`, { skip: agent.missing ?? false }, async (t) => {
    t.test('in plan mode nothing is done to the directory', async (t) => {
      const { cwd } = await work(t, agent, 'plan', [
        agent.shell('touch shell.txt'),
        { tool: 'write', input: { filePath: 'written.txt', content: 'x' } },
      ])
      t.notOk(existsSync(join(cwd, 'shell.txt')), 'by the shell')
      t.notOk(existsSync(join(cwd, 'written.txt')), 'by its tool for files')
    })
    t.test('in the other modes its rules hold', async (t) => {
      const { host, cwd } = await work(t, agent, 'default', [agent.shell('touch shell.txt')])
      t.ok(existsSync(join(cwd, 'shell.txt')))
      t.strictSame(host.asks, [])
    })
  })

t.test(
  'opencode starts no language server and no formatter of a repository that is not trusted, though its own configuration has them on',
  { skip: AGENTS.opencode.missing ?? false },
  async (t) => {
    const calls = [
      { tool: 'read', input: { filePath: 'a.ts' } },
      { tool: 'write', input: { filePath: 'b.ts', content: 'export  const b=1' } },
    ]
    const { cwd, ran } = await work(t, AGENTS.opencode, 'default', calls)
    t.ok(existsSync(join(cwd, 'b.ts')))
    t.strictSame(ran, [])
    t.not((await work(t, AGENTS.opencode, 'default', calls, true)).ran.length, 0, 'where it is trusted it does')
  },
)
