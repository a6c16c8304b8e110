import { existsSync } from 'node:fs'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { AgentDeclaration } from '../../src/engines/cli/agent-table.js'
import { claudeExecutable } from '../../src/engines/cli/claude/executable.js'

const ROOT = new URL('../../.agents/', import.meta.url)
const at = (path: string) => fileURLToPath(new URL(path, ROOT))

export const CLAUDE_SDK = pathToFileURL(at('claude/node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs')).href

/** Where commands of agents lie that are looked up in PATH. */
export const BINARIES = at('codex/node_modules/.bin')

/** What an agent needs to be driven against the vendors on loopback, with nothing of this machine's. */
export interface AgentUnderTest {
  name: string
  /** Why it is not run here; undefined when it is installed. */
  missing: string | undefined
  declaration: AgentDeclaration
  /** Its environment, in a directory of its own. */
  env(home: string, vendors: string): Record<string, string>
  /** Files below the directory, by path. */
  files(vendors: string): Record<string, string>
  /** A call of its shell, and one that asks. */
  shell(command: string): { tool: string; input: object }
  /** How its model calls a tool that the gateway hosts. */
  hosted(name: string): { tool: string; namespace?: string }
  /** Whether a session can be resumed at once, and is complete then. */
  resumes: 'complete' | 'without what it said last' | 'not within a minute'
  /** What can be done with the sessions that it keeps on disk. */
  keeps: 'unlisted' | 'listed' | 'listed and deleted'
  /** What becomes of its turn when a call is denied. */
  denied: 'goes on' | 'ends its turn'
  /** Whether it knows, when it is resumed, the prompt of a turn that was cut off with it. */
  knowsCutOff: boolean
  /** The folder below the directory in which it keeps what was said. */
  transcripts: string
  /** A model that it can be switched to. */
  otherModel?: string
}

const bin = (agent: string, name: string) => at(`${agent}/node_modules/.bin/${name}`)
const OPENCODE = at(`opencode/node_modules/opencode-${process.platform}-${process.arch}/bin/opencode`)

const KILO = at(`kilo/node_modules/@kilocode/cli-${process.platform}-${process.arch}/bin/kilo`)

const CODEX = at(`codex/node_modules/@openai/codex-${process.platform}-${process.arch}`)

/** The platform's binary is a package of its own, which npm leaves out in silence when it cannot be fetched: so it is looked for too. */
const missing = (agent: string, ...paths: (string | undefined)[]) =>
  paths.every((path) => path && existsSync(path))
    ? undefined
    : `${agent} is not installed: npm run test:agents installs it`

const json = (value: unknown) => JSON.stringify(value)

/** A configuration of opencode and its kin: one model, on loopback. */
const loopbackModel = (vendors: string) =>
  json({
    ...{ autoupdate: false, share: 'disabled', model: 'loopback/scripted' },
    provider: {
      loopback: {
        npm: '@ai-sdk/openai-compatible',
        options: { baseURL: `${vendors}/v1`, apiKey: 'dummy' },
        models: {
          scripted: {
            name: 'scripted',
            limit: { context: 100_000, output: 10_000 },
            cost: { input: 1_000, output: 2_000 },
          },
        },
      },
    },
  })

export const AGENTS = {
  claude: {
    name: 'claude',
    missing: missing('claude', fileURLToPath(CLAUDE_SDK), claudeExecutable(CLAUDE_SDK)),
    declaration: { name: 'claude' },
    env: (home, vendors) => ({
      ...{ CLAUDE_CONFIG_DIR: `${home}/claude`, ANTHROPIC_BASE_URL: vendors, ANTHROPIC_API_KEY: 'dummy' },
      ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_TELEMETRY: '1', DISABLE_ERROR_REPORTING: '1' },
      CLAUDE_CODE_MAX_RETRIES: '0',
    }),
    files: () => ({ 'claude/settings.json': '{}' }),
    shell: (command) => ({ tool: 'Bash', input: { command } }),
    hosted: (name) => ({ tool: `mcp__session-gateway__${name}` }),
    resumes: 'complete',
    keeps: 'listed and deleted',
    denied: 'goes on',
    knowsCutOff: true,
    transcripts: 'claude/projects',
    otherModel: 'haiku',
  },
  opencode: {
    name: 'opencode',
    missing: missing('opencode', OPENCODE),
    declaration: { name: 'opencode', command: OPENCODE },
    env: (home, vendors) => ({
      ...{
        XDG_CONFIG_HOME: `${home}/config`,
        XDG_DATA_HOME: `${home}/data`,
        XDG_CACHE_HOME: `${home}/cache`,
        XDG_STATE_HOME: `${home}/state`,
      },
      ...{ OPENCODE_DISABLE_MODELS_FETCH: '1' },
      OPENCODE_CONFIG_CONTENT: loopbackModel(vendors),
    }),
    files: () => ({ 'config/.keep': '', 'data/.keep': '' }),
    shell: (command) => ({ tool: 'bash', input: { command, description: 'a command' } }),
    hosted: (name) => ({ tool: `session-gateway_${name}` }),
    resumes: 'complete',
    keeps: 'listed',
    denied: 'goes on',
    knowsCutOff: true,
    transcripts: 'data/opencode',
  },
  kilo: {
    name: 'kilo',
    missing: missing('kilo', KILO),
    declaration: { name: 'kilo', command: KILO },
    env: (home, vendors) => ({
      ...{
        XDG_CONFIG_HOME: `${home}/config`,
        XDG_DATA_HOME: `${home}/data`,
        XDG_CACHE_HOME: `${home}/cache`,
        XDG_STATE_HOME: `${home}/state`,
      },
      ...{ KILO_DISABLE_MODELS_FETCH: '1' },
      KILO_CONFIG_CONTENT: loopbackModel(vendors),
    }),
    files: () => ({ 'config/.keep': '', 'data/.keep': '' }),
    shell: (command) => ({ tool: 'bash', input: { command, description: 'a command' } }),
    hosted: (name) => ({ tool: `session-gateway_${name}` }),
    resumes: 'complete',
    keeps: 'listed',
    denied: 'goes on',
    knowsCutOff: true,
    transcripts: 'data/kilo',
  },
  gemini: {
    name: 'gemini',
    missing: missing('gemini', bin('gemini', 'gemini')),
    declaration: { name: 'gemini', command: bin('gemini', 'gemini') },
    env: (home, vendors) => ({
      GEMINI_CLI_HOME: `${home}/gemini`,
      GEMINI_API_KEY: 'dummy',
      GOOGLE_GEMINI_BASE_URL: vendors,
    }),
    files: () => ({
      'gemini/.gemini/settings.json': json({
        ...{
          privacy: { usageStatisticsEnabled: false },
          telemetry: { enabled: false },
          general: { enableAutoUpdate: false },
        },
        security: { auth: { selectedType: 'gemini-api-key' } },
      }),
    }),
    shell: (command) => ({ tool: 'run_shell_command', input: { command, description: 'a command' } }),
    hosted: (name) => ({ tool: `mcp_session-gateway_${name}` }),
    // Loaded within the minute of its beginning a session would be lost: the driver waits, the tests do not.
    resumes: 'not within a minute',
    keeps: 'unlisted',
    denied: 'goes on',
    knowsCutOff: true,
    transcripts: 'gemini/.gemini/tmp',
  },
  codex: {
    name: 'codex',
    missing: missing('codex', bin('codex', 'codex-acp'), CODEX),
    declaration: { name: 'codex', command: bin('codex', 'codex-acp') },
    env: (home) => ({ CODEX_HOME: `${home}/codex`, OPENAI_API_KEY: 'dummy', NO_BROWSER: '1' }),
    files: (vendors) => ({
      'codex/config.toml': `model = "scripted"
model_provider = "loopback"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.loopback]
name = "loopback"
base_url = "${vendors}/v1"
env_key = "OPENAI_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`,
    }),
    shell: (cmd) => ({
      tool: 'exec_command',
      input: { cmd, sandbox_permissions: 'require_escalated', justification: 'may I?' },
    }),
    hosted: (name) => ({ tool: name, namespace: 'mcp__session_gateway' }),
    resumes: 'complete',
    keeps: 'listed and deleted',
    denied: 'ends its turn',
    knowsCutOff: true,
    transcripts: 'codex/sessions',
  },
  qwen: {
    name: 'qwen',
    missing: missing('qwen', bin('qwen', 'qwen')),
    declaration: { name: 'qwen', command: bin('qwen', 'qwen') },
    env: (home, vendors) => ({
      ...{ HOME: `${home}/qwen`, OPENAI_API_KEY: 'dummy', OPENAI_BASE_URL: `${vendors}/v1`, OPENAI_MODEL: 'scripted' },
    }),
    files: () => ({
      'qwen/.qwen/settings.json': json({
        ...{
          privacy: { usageStatisticsEnabled: false },
          telemetry: { enabled: false },
          general: { disableAutoUpdate: true },
        },
        security: { auth: { selectedType: 'openai' } },
      }),
    }),
    shell: (command) => ({
      tool: 'run_shell_command',
      input: { command, description: 'a command', is_background: false },
    }),
    hosted: (name) => ({ tool: `mcp__session-gateway__${name}` }),
    resumes: 'without what it said last',
    keeps: 'listed',
    denied: 'goes on',
    knowsCutOff: true,
    transcripts: 'qwen/.qwen/projects',
  },
} satisfies Record<string, AgentUnderTest>
