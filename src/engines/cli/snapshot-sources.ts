/**
 * Which files of a configuration directory the view of a profile reads. An allow-list: every path is relative to the directory, every
 * settings field is named, and nothing else is ever looked at.
 */
export interface SnapshotSources {
  readonly settings?: SettingsSource
  readonly memory?: string
  /** Directories with one directory per skill, each holding a SKILL.md. */
  readonly skills?: readonly string[]
  readonly agents?: readonly NamedFiles[]
  readonly commands?: readonly NamedFiles[]
}

/** Files that are shown by name, without their extension; a nested one as `folder:name`. */
export interface NamedFiles {
  readonly directory: string
  readonly extension: string
}

/** Dotted paths of the fields that are shown. Of `toml`, only plain strings at the top level are read. */
export interface SettingsSource {
  readonly path: string
  readonly format: 'json' | 'toml'
  readonly model?: string
  readonly permissionMode?: string
  /** Lists of rules, or one object whose leaves are `allow`, `ask` and `deny`. */
  readonly rules?: { readonly allow: string; readonly ask: string; readonly deny: string } | string
  /** An object whose keys are names of environment variables. */
  readonly env?: string
  /** An object whose keys are names of hook events. */
  readonly hooks?: string
}

const markdown = (directory: string): NamedFiles => ({ directory, extension: '.md' })
const toml = (directory: string): NamedFiles => ({ directory, extension: '.toml' })

/** @param folder of the config home */
const opencodeSources = (folder: string): SnapshotSources => ({
  settings: { path: `${folder}/${folder}.json`, format: 'json', model: 'model', rules: 'permission' },
  memory: `${folder}/AGENTS.md`,
  skills: [`${folder}/skills`, `${folder}/skill`],
  agents: [markdown(`${folder}/agents`), markdown(`${folder}/agent`)],
  commands: [markdown(`${folder}/commands`), markdown(`${folder}/command`)],
})

/** By agent. */
export const SNAPSHOT_SOURCES = {
  claude: {
    settings: {
      path: 'settings.json',
      format: 'json',
      model: 'model',
      permissionMode: 'permissions.defaultMode',
      rules: { allow: 'permissions.allow', ask: 'permissions.ask', deny: 'permissions.deny' },
      env: 'env',
      hooks: 'hooks',
    },
    memory: 'CLAUDE.md',
    skills: ['skills'],
    agents: [markdown('agents')],
    commands: [markdown('commands')],
  },
  opencode: opencodeSources('opencode'),
  kilo: opencodeSources('kilo'),
  gemini: {
    settings: {
      path: '.gemini/settings.json',
      format: 'json',
      model: 'model.name',
      permissionMode: 'general.defaultApprovalMode',
      hooks: 'hooks',
    },
    memory: '.gemini/GEMINI.md',
    skills: ['.gemini/skills'],
    agents: [markdown('.gemini/agents')],
    commands: [toml('.gemini/commands')],
  },
  codex: {
    settings: { path: 'config.toml', format: 'toml', model: 'model', permissionMode: 'approval_policy' },
    memory: 'AGENTS.md',
    skills: ['skills'],
    agents: [toml('agents')],
    commands: [markdown('prompts')],
  },
  qwen: {
    settings: {
      path: 'settings.json',
      format: 'json',
      model: 'model.name',
      permissionMode: 'tools.approvalMode',
      env: 'env',
      hooks: 'hooks',
    },
    memory: 'QWEN.md',
    skills: ['skills'],
    agents: [markdown('agents')],
    commands: [markdown('commands'), toml('commands')],
  },
} as const satisfies Record<string, SnapshotSources>
