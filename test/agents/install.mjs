/**
 * Installs the agents that `npm run test:agents` drives into `.agents/<name>/`, which git ignores. They are far too large (1.4 GB
 * together) for `npm ci`. Arguments name the agents to install; none means all. What is installed already is left alone.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const AGENTS = {
  claude: ['@anthropic-ai/claude-agent-sdk', '0.3.332'],
  opencode: ['opencode-ai', '1.18.33'],
  gemini: ['@google/gemini-cli', '0.61.0'],
  codex: ['@agentclientprotocol/codex-acp', '2.6.0'],
  kilo: ['@kilocode/cli', '7.8.1'],
  qwen: ['@qwen-code/qwen-code', '0.15.10'],
}

const root = fileURLToPath(new URL('../../.agents/', import.meta.url))
const wanted = process.argv.length > 2 ? process.argv.slice(2) : Object.keys(AGENTS)

for (const name of wanted) {
  const [packageName, version] = AGENTS[name] ?? []
  if (!packageName) {
    console.error(`Unknown agent "${name}"; there are ${Object.keys(AGENTS).join(', ')}.`)
    process.exit(2)
  }
  const folder = join(root, name)
  const manifest = join(folder, 'node_modules', packageName, 'package.json')
  if (existsSync(manifest) && JSON.parse(readFileSync(manifest, 'utf8')).version === version) continue
  mkdirSync(folder, { recursive: true })
  // A manifest of its own keeps npm from walking up to the repository's.
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n')
  console.log(`installing ${packageName}@${version}`)
  const flags = ['--no-save', '--no-audit', '--no-fund', '--no-package-lock', '--ignore-scripts']
  const { status } = spawnSync('npm', ['install', ...flags, `${packageName}@${version}`], {
    cwd: folder,
    stdio: 'inherit',
  })
  if (status !== 0) console.error(`${name} could not be installed; its tests will be skipped.`)
}
