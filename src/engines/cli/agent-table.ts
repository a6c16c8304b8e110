import { join } from 'node:path'
import { CLI_PERMISSION_MODES, type PermissionMode } from '../../../schemas/permissions.js'
import { geminiServerTool, qwenToolName, type ToolNaming } from './acp/tool-names.js'
import type { Environment } from './environment.js'
import { opencodeSettings } from './opencode-settings.js'
import { SNAPSHOT_SOURCES, type SnapshotSources } from './snapshot-sources.js'

import { distrustInCodex } from './workspace/codex.js'
import { distrustInGemini } from './workspace/gemini.js'
import { distrustInOpencode } from './workspace/opencode.js'
import { distrustInQwen } from './workspace/qwen.js'
import type { UntrustedWorkspace } from './workspace/trust.js'

export type { NamedFiles, SettingsSource, SnapshotSources } from './snapshot-sources.js'

/** The agent of a `cli` profile that names none. */
export const DEFAULT_AGENT = 'claude'

/** What the gateway knows of one command-line agent. */
export interface AgentRow {
  readonly name: string
  /** `claude`: its own SDK; `acp`: the Agent Client Protocol over stdio. */
  readonly driver: 'claude' | 'acp'
  /** Executable, looked up in the session's PATH. Absent for claude: the one that comes with its SDK. */
  readonly command?: string
  /** The npm package that brings the command. */
  readonly package?: string
  readonly args: readonly string[]
  /** Set for every session, under what the operator's environment and `buildRunnerConfig` say. */
  readonly env: Readonly<Record<string, string>>
  /** What of it the operator declared: no variable of the gateway's own takes its place. */
  readonly declaredEnv?: Readonly<Record<string, string>> | undefined
  /** Which of the gateway's own variables reach this agent beyond the common ones: names, or `PREFIX_*`. */
  readonly inheritedEnv: readonly string[]
  /** The variable that gives this agent its configuration directory, where its credentials lie. */
  readonly configDirEnv: string
  /** Variables that must hold the same directory when that one is set, or the agent finds one half of its state elsewhere. */
  readonly configDirEnvToo?: readonly string[]
  /** Where the agent looks when `configDirEnv` is not set; absent when that is not known. */
  readonly defaultConfigDir?: (home: string) => string
  /** What AGENT_OAUTH_TOKEN is called by this agent. Absent: it takes no token from its environment. */
  readonly oauthTokenEnv?: string
  readonly modes: AgentModes
  readonly permissionModes: readonly PermissionMode[]
  readonly credentials: CredentialSources
  readonly acp?: AcpTraits
  /** Set in every session, over whatever else is said of these variables. */
  readonly settings?: (env: Environment, trusted: boolean) => Record<string, string>
  /** How it is kept from what files of the working directory would have it run. Absent: it cannot be. */
  readonly untrusted?: UntrustedWorkspace
  readonly snapshot: SnapshotSources
  /**
   * Where it keeps a session, in files that only grow and that have all that it goes on with: paths below its config directory, with `{id}`
   * for its own name of the session, `*` for any folder and `**` for all that is below. Absent: that is not known.
   */
  readonly carry?: readonly string[]
  /** Whether it asks before it acts is not known: nobody has said what its modes are. */
  readonly modesUnknown?: boolean
}

type AgentModes = Readonly<Partial<Record<PermissionMode, AgentMode>>>

/** How an agent is brought into one of our permission modes. */
export interface AgentMode {
  /** The agent's own name for it; absent: nothing is set. */
  readonly id?: string
  /** Who answers what the agent asks: a person, or we ourselves. `edits` allows edits of files and asks for the rest. */
  readonly asks: 'person' | 'allow' | 'edits' | 'deny'
}

/** Where an agent's credentials come from, in the order in which the agent takes them. */
interface CredentialSources {
  /** Variables that hold an API key. */
  readonly apiKeyEnv: readonly string[]
  /** A file of the config directory that holds a login; `oauth` is a dotted path that is set when it is a subscription's. */
  readonly login?: { readonly path: string; readonly oauth?: string }
  /** A command that tells by its exit code, 0 or 1, whether the agent is logged in; `presence`: whether any of the above is there. */
  readonly probe?: { readonly command?: string; readonly args: readonly string[] } | 'presence'
}

/** What differs between agents that speak the Agent Client Protocol. */
export interface AcpTraits {
  /** Whether it loads its earlier sessions. */
  readonly resume: boolean
  /** Whether it may copy a session, to go on with the copy; it says itself, once it runs, whether it does. */
  readonly fork?: true
  /** Whether it may list its sessions; it says itself, once it runs, whether it does. */
  readonly lists?: true
  /** It opens any session that it is asked for, as an empty one when there is none. */
  readonly loadsAnything?: true
  /** A session that is opened in another directory than its own waits for ever for what a person has allowed. */
  readonly staysInPlace?: true
  /** Where the name of a tool stands when no field has it. */
  readonly toolName?: ToolNaming
  /** What it calls a tool of a server. */
  readonly serverToolName?: (server: string, tool: string) => string
  /** How it is told at its start that tools are granted, when it asks without saying for which. */
  readonly grantArgs?: (toolNames: readonly string[]) => readonly string[]
  /** It looks at the tools of servers after its session is open; a prompt that comes before goes without them. */
  readonly listsToolsLate?: true
  /** Its tools that run a helper, whose words come as if they were its own. */
  readonly helperTools?: readonly string[]
  /** How long it may say nothing while its model is asked: it tries again for minutes, and tells nobody. */
  readonly patienceMs?: number
  /** A command that tells what a session has cost, when the agent does not say so as it loads it. */
  readonly priorCost?: { readonly args: (sessionId: string) => readonly string[]; readonly figure: RegExp }
  /** The option that allows one call and nothing else, where others that say so change its mode, to one that nobody chose. */
  readonly allowsOnce?: string
  /** Pieces of text that are the agent's own bookkeeping, not the model's. */
  readonly ignoredText?: RegExp
  /** It tells the history of a loaded session after the answer, up to the list of its commands. */
  readonly replaysLate?: true
  /**
   * Loading a session begins another one of its `transcripts`, named this, minute, suffix; in the minute in which the session was begun that
   * is its own file.
   */
  readonly loadBegins?: string
  /** How the files end, below this folder of the config directory, in which it keeps a session. Absent: that is not known. */
  readonly transcripts?: { readonly folder: string; readonly suffix: (sessionId: string) => string }
  /** It tells what a model's vendor refused as text, in a turn that went well but used no tokens. */
  readonly refusesInText?: true
  /** It counts the tokens of answers that came to their end alone, and ends a turn well that got none. */
  readonly countsWholeAnswers?: true
  /** It ends a turn well, without a word, of which its model answered nothing that it could read. */
  readonly endsUnanswered?: true
  /** It makes its databases in its config directory when it starts there first, and one that starts beside that fails. */
  readonly firstStartAlone?: true
  /** A command that it runs goes on when its turn is interrupted, until it ends itself. */
  readonly runsOn?: true
  /** How it is told to use the API key of its environment, when it asks for a login in spite of it: a method of the protocol. */
  readonly apiKeyLogin?: string
}

/** An agent as the operator declares it. One with the name of a built-in row overrides that row field by field. */
export interface AgentDeclaration {
  name: string
  /** Required unless the name is a built-in's. */
  command?: string
  args?: readonly string[]
  env?: Readonly<Record<string, string>>
  /** Default `AGENT_CONFIG_DIR`. */
  configDirEnv?: string
  /**
   * The agent's own names of the permission modes that it has. Default: `default` and `bypassPermissions`, set by nothing. Then nobody
   * knows whether it asks before it acts: a warning says so, and `dontAsk` is refused.
   */
  modes?: ModeNames
  /** How it logs in, when it asks for that: a method of its own, and the variable that holds the key which the method takes. */
  auth?: { method: string; apiKeyEnv?: string }
}

/** Who answers in a mode of an agent that speaks the Agent Client Protocol. In `plan` nobody may allow anything. */
const ASKS: Readonly<Record<PermissionMode, AgentMode['asks']>> = {
  default: 'person',
  bypassPermissions: 'allow',
  dontAsk: 'deny',
  acceptEdits: 'edits',
  plan: 'deny',
  auto: 'person',
}

type ModeNames = Readonly<Partial<Record<PermissionMode, string>>>

/** The modes of an agent, by its own names of them. @param asks who answers, where it is somebody else than as a rule */
const asking = (names: ModeNames, asks: AgentModes = {}): AgentModes =>
  Object.fromEntries(
    CLI_PERMISSION_MODES.flatMap((mode) => {
      const id = names[mode]
      return id === undefined ? [] : [[mode, { asks: asks[mode]?.asks ?? ASKS[mode], id }]]
    }),
  )

/** Names of gemini and its kin. */
const ASKING_BY_DEFAULT: ModeNames = { default: 'default', dontAsk: 'default', plan: 'plan' }

const BUILT_IN_ROWS: readonly AgentRow[] = [
  row({
    name: 'claude',
    driver: 'claude',
    // A service's agent changes when the operator changes it; and an outage is told after seconds, not minutes.
    env: { DISABLE_AUTOUPDATER: '1', CLAUDE_CODE_MAX_RETRIES: '3', CLAUDE_CODE_STARTUP_FAILURE_RESULTS: '1' },
    inheritedEnv: [
      'ANTHROPIC_*',
      'CLAUDE_*',
      'DISABLE_*',
      'AWS_*',
      'GOOGLE_*',
      'CLOUD_ML_REGION',
      'VERTEX_*',
      'IS_SANDBOX',
    ],
    configDirEnv: 'CLAUDE_CONFIG_DIR',
    defaultConfigDir: (home) => join(home, '.claude'),
    oauthTokenEnv: 'CLAUDE_CODE_OAUTH_TOKEN',
    modes: Object.fromEntries(CLI_PERMISSION_MODES.map((mode) => [mode, { id: mode, asks: 'person' }])),
    credentials: { apiKeyEnv: ['ANTHROPIC_API_KEY'], probe: { args: ['auth', 'status'] } },
    // By the sources of its settings, which the driver says.
    untrusted: {},
    snapshot: SNAPSHOT_SOURCES.claude,
    carry: ['projects/*/{id}.jsonl', 'projects/*/{id}/**'],
  }),
  row({
    name: 'opencode',
    driver: 'acp',
    command: 'opencode',
    package: 'opencode-ai',
    args: ['acp'],
    env: {
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      // Asks for nothing by itself. Our modes decide who answers, so that they can change while it runs.
      OPENCODE_PERMISSION: JSON.stringify({
        '*': 'ask',
        ...Object.fromEntries(
          ['read', 'list', 'glob', 'grep', 'lsp', 'todoread', 'todowrite'].map((tool) => [tool, 'allow']),
        ),
      }),
    },
    inheritedEnv: ['OPENCODE_*', '*_API_KEY', '*_BASE_URL', 'AWS_*', 'GOOGLE_*'],
    configDirEnv: 'XDG_CONFIG_HOME',
    // Credentials lie under the data home, settings under the config home.
    configDirEnvToo: ['XDG_DATA_HOME'],
    defaultConfigDir: (home) => join(home, '.config'),
    modes: asking({
      default: 'build',
      acceptEdits: 'build',
      bypassPermissions: 'build',
      dontAsk: 'build',
      plan: 'plan',
    }),
    credentials: { apiKeyEnv: ['OPENCODE_API_KEY', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY'] },
    acp: {
      resume: true,
      fork: true,
      lists: true,
      staysInPlace: true,
      toolName: 'title',
      serverToolName: (server, tool) => `${server}_${tool}`,
      helperTools: ['task'],
      endsUnanswered: true,
      priorCost: { args: (sessionId) => ['export', sessionId], figure: /"cost":\s*([\d.e-]+)/ },
    },
    settings: opencodeSettings('OPENCODE_CONFIG_CONTENT'),
    untrusted: { env: { OPENCODE_DISABLE_PROJECT_CONFIG: '1', OPENCODE_PURE: '1' }, prepare: distrustInOpencode },
    snapshot: SNAPSHOT_SOURCES.opencode,
  }),
  row({
    name: 'gemini',
    driver: 'acp',
    command: 'gemini',
    package: '@google/gemini-cli',
    args: ['--acp'],
    // For a credential probe; in a session the profile says it.
    env: { GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    inheritedEnv: ['GEMINI_*', 'GOOGLE_*', 'CLOUDSDK_*'],
    // Stands in for the home directory: what the agent keeps lies in .gemini under it.
    configDirEnv: 'GEMINI_CLI_HOME',
    defaultConfigDir: (home) => home,
    modes: asking({ ...ASKING_BY_DEFAULT, acceptEdits: 'autoEdit', bypassPermissions: 'yolo' }),
    credentials: {
      apiKeyEnv: ['GEMINI_API_KEY', 'GOOGLE_API_KEY', 'GOOGLE_APPLICATION_CREDENTIALS', 'GOOGLE_CLOUD_PROJECT'],
      login: { path: '.gemini/oauth_creds.json', oauth: 'refresh_token' },
      probe: 'presence',
    },
    acp: {
      resume: true,
      toolName: 'id',
      serverToolName: geminiServerTool,
      patienceMs: 90_000,
      apiKeyLogin: 'gemini-api-key',
      ignoredText: /^(\[MODE_UPDATE\] |<session_context>|\[Function Response: )/,
      replaysLate: true,
      countsWholeAnswers: true,
      transcripts: { folder: '.gemini/tmp', suffix: (sessionId) => `-${sessionId.slice(0, 8)}.jsonl` },
      loadBegins: 'session-',
    },
    untrusted: {
      env: { GEMINI_CLI_TRUST_WORKSPACE: 'false' },
      prepare: distrustInGemini,
      trustedEnv: { GEMINI_CLI_TRUST_WORKSPACE: 'true' },
      withoutMcp: true,
      modes: asking({ acceptEdits: 'default', bypassPermissions: 'default' }),
    },
    snapshot: SNAPSHOT_SOURCES.gemini,
  }),
  row({
    name: 'codex',
    driver: 'acp',
    command: 'codex-acp',
    package: '@agentclientprotocol/codex-acp',
    args: [],
    env: {},
    inheritedEnv: ['CODEX_*', 'OPENAI_*', 'AZURE_OPENAI_*'],
    configDirEnv: 'CODEX_HOME',
    defaultConfigDir: (home) => join(home, '.codex'),
    modes: asking({
      ...{ default: 'read-only', acceptEdits: 'workspace-write', bypassPermissions: 'agent-full-access' },
      ...{ dontAsk: 'read-only', plan: 'read-only', auto: 'agent' },
    }),
    credentials: {
      apiKeyEnv: ['CODEX_API_KEY', 'OPENAI_API_KEY'],
      login: { path: 'auth.json', oauth: 'tokens.refresh_token' },
      probe: { command: 'codex', args: ['login', 'status'] },
    },
    acp: {
      resume: true,
      fork: true,
      lists: true,
      apiKeyLogin: 'api-key',
      refusesInText: true,
      runsOn: true,
      firstStartAlone: true,
      listsToolsLate: true,
      transcripts: { folder: 'sessions', suffix: (sessionId) => `-${sessionId}.jsonl` },
    },
    untrusted: { prepare: distrustInCodex },
    snapshot: SNAPSHOT_SOURCES.codex,
  }),
  row({
    name: 'qwen',
    driver: 'acp',
    command: 'qwen',
    package: '@qwen-code/qwen-code',
    args: ['--acp'],
    // From 0.24 on its first turn would begin without the tools of servers.
    env: { QWEN_CODE_LEGACY_MCP_BLOCKING: '1' },
    inheritedEnv: ['QWEN_*', 'OPENAI_*', 'DASHSCOPE_*'],
    configDirEnv: 'QWEN_HOME',
    defaultConfigDir: (home) => join(home, '.qwen'),
    modes: asking({ ...ASKING_BY_DEFAULT, acceptEdits: 'auto-edit', bypassPermissions: 'yolo' }),
    credentials: {
      apiKeyEnv: ['OPENAI_API_KEY', 'DASHSCOPE_API_KEY'],
      login: { path: 'oauth_creds.json', oauth: 'refresh_token' },
    },
    acp: {
      resume: true,
      lists: true,
      loadsAnything: true,
      apiKeyLogin: 'openai',
      toolName: qwenToolName,
      allowsOnce: 'proceed_once',
      grantArgs: (toolNames) => toolNames.flatMap((name) => ['--allowed-tools', name]),
      helperTools: ['agent', 'task'],
      transcripts: { folder: 'projects', suffix: (sessionId) => `${sessionId}.jsonl` },
    },
    untrusted: {
      prepare: distrustInQwen,
      withoutMcp: true,
      modes: asking({ acceptEdits: 'default', bypassPermissions: 'default' }),
    },
    snapshot: SNAPSHOT_SOURCES.qwen,
  }),
]

/** Grown from opencode: it takes the same, under names of its own. What keeps that from its working directory nobody has tried on it. */
function kiloRow({ untrusted: _opencodes, ...opencode }: AgentRow): AgentRow {
  const env = Object.entries(opencode.env).map(([name, value]) => [name.replace(/^OPENCODE_/, 'KILO_'), value])
  return row({
    ...opencode,
    ...{ name: 'kilo', command: 'kilo', package: '@kilocode/cli' },
    modes: asking({ default: 'code', acceptEdits: 'code', bypassPermissions: 'code', dontAsk: 'code', plan: 'plan' }),
    // it sends what is said in sessions to its vendor otherwise
    env: { ...Object.fromEntries(env), KILO_DISABLE_SESSION_INGEST: '1' },
    settings: opencodeSettings('KILO_CONFIG_CONTENT'),
    inheritedEnv: opencode.inheritedEnv.map((name) => name.replace(/^OPENCODE_/, 'KILO_')),
    credentials: { apiKeyEnv: ['KILO_API_KEY', 'ANTHROPIC_API_KEY', 'OPENAI_API_KEY'] },
    snapshot: SNAPSHOT_SOURCES.kilo,
  })
}

const OPENCODE = BUILT_IN_ROWS.find(({ name }) => name === 'opencode')!

export const BUILT_IN_AGENTS: ReadonlyMap<string, AgentRow> = new Map(
  [...BUILT_IN_ROWS, kiloRow(OPENCODE)].map((built) => [built.name, built]),
)

/** The built-in agents and the operator's, by name. */
export function agentTable(declared: readonly AgentDeclaration[] = []): ReadonlyMap<string, AgentRow> {
  const table = new Map(BUILT_IN_AGENTS)
  for (const declaration of declared) {
    const below = table.get(declaration.name) ?? UNKNOWN_AGENT
    const { env, modes, auth, ...fields } = declaration
    table.set(
      declaration.name,
      row({
        ...below,
        ...fields,
        env: { ...below.env, ...env },
        declaredEnv: env,
        modes: modes ? asking(modes, below.modes) : below.modes,
        modesUnknown: !modes && below === UNKNOWN_AGENT,
        ...(auth && declaredLogin(auth, below)),
      }),
    )
  }
  return table
}

/** What is taken for granted of an agent that the operator declares: it speaks the Agent Client Protocol, and nothing else. */
const UNKNOWN_AGENT: AgentRow = row({
  name: '',
  driver: 'acp',
  env: {},
  inheritedEnv: [],
  configDirEnv: 'AGENT_CONFIG_DIR',
  modes: { default: { asks: 'person' }, bypassPermissions: { asks: 'allow' } },
  credentials: { apiKeyEnv: [] },
  acp: { resume: true, fork: true, lists: true },
  snapshot: {},
})

const declaredLogin = (
  { method, apiKeyEnv }: NonNullable<AgentDeclaration['auth']>,
  { acp = { resume: true }, inheritedEnv, credentials }: AgentRow,
): Pick<AgentRow, 'acp' | 'inheritedEnv' | 'credentials'> => ({
  acp: { ...acp, apiKeyLogin: method },
  inheritedEnv: apiKeyEnv === undefined ? inheritedEnv : [...inheritedEnv, apiKeyEnv],
  credentials: { ...credentials, apiKeyEnv: apiKeyEnv === undefined ? [] : [apiKeyEnv] },
})

function row(fields: Omit<AgentRow, 'permissionModes' | 'args'> & { args?: readonly string[] }): AgentRow {
  const permissionModes = CLI_PERMISSION_MODES.filter((mode) => fields.modes[mode] !== undefined)
  return { args: [], ...fields, permissionModes }
}
