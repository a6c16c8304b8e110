import { type SchemaOptions, type Static, type TSchema, Type } from '@sinclair/typebox'
import { described, Flag, SHAPE, StringEnum, strict, Text } from './common.js'
import { PermissionMode } from './permissions.js'
import { Capability, Engine } from './sessions.js'

export const PROFILE_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'

/** Of a variable of the environment: a key that was written down in its place is none. */
export const VARIABLE_NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_]*$'
export const VARIABLE_NAME_SHAPE = 'the name of an environment variable'

const ProfileName = (options: SchemaOptions = {}) =>
  Type.String({
    pattern: PROFILE_NAME_PATTERN,
    ...options,
    [SHAPE]:
      'at most 64 letters from A to Z and a to z, digits, ".", "_" and "-", of which the first is a letter or a digit',
  })

export const ProviderRef = Type.Object(
  {
    id: Type.String({ minLength: 1, description: 'Which provider, as in `anthropic`.' }),
    model: Type.Optional(Type.String({ minLength: 1, description: 'The model of sessions that name none.' })),
    models: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), { description: 'Models to choose from. Default: `model` alone.' }),
    ),
    baseUrl: Type.Optional(
      Type.String({ minLength: 1, description: "Where it is. Default: the provider's own address." }),
    ),
    apiKeyEnv: Type.Optional(
      Type.String({
        pattern: VARIABLE_NAME_PATTERN,
        [SHAPE]: VARIABLE_NAME_SHAPE,
        description: 'Variable of the gateway that holds the key; never the key.',
      }),
    ),
  },
  { ...strict, description: 'The model provider of a profile.' },
)
export type ProviderRef = Static<typeof ProviderRef>

export const ProfileDefaults = Type.Object(
  { model: Type.Optional(Type.String({ minLength: 1 })), permissionMode: Type.Optional(PermissionMode) },
  { ...strict, description: 'What sessions that say nothing else get. No limit: who says something else gets that.' },
)

export const ProfileSession = Type.Object(
  {
    capabilities: Type.Optional(Type.Array(Capability, { description: 'Default: none.' })),
    mcpServers: Type.Optional(
      Type.Array(Type.String({ minLength: 1 }), { description: 'Names of servers that the host has connected.' }),
    ),
    instructions: Type.Optional(Text('Put before every conversation.')),
  },
  {
    ...strict,
    description:
      'What provider sessions are granted by name. Absent: whatever the host wired; present: nothing beyond it.',
  },
)

const profileFields = {
  engine: Type.Optional(Engine),
  agent: Type.Optional(
    Type.String({ minLength: 1, description: 'Which command-line agent; `cli` only. Default `claude`.' }),
  ),
  configDir: Type.Optional(
    Type.String({ minLength: 1, description: 'Config directory of the agent; `cli` only. Default: its own.' }),
  ),
  provider: Type.Optional(ProviderRef),
  description: Type.Optional(Text('What it is for, for a person.')),
  defaults: Type.Optional(ProfileDefaults),
  session: Type.Optional(ProfileSession),
  trustWorkspace: Type.Optional(
    Flag('Whether files of the working directory that can run commands are honoured. Default false.'),
  ),
}

export const ProfileOptions = Type.Object(
  {
    name: ProfileName({ description: 'Unique, and never changed.' }),
    ...profileFields,
    engine: Type.Optional(described(Engine, 'Default `cli`.')),
  },
  { ...strict, description: 'Who sessions run as: a config directory of an agent, or a model provider.' },
)
export type ProfileOptions = Static<typeof ProfileOptions>
export const CreateProfileRequest = ProfileOptions
export type CreateProfileRequest = ProfileOptions

const clearable = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))

export const UpdateProfileRequest = Type.Object(
  {
    engine: clearable(Engine),
    agent: clearable(profileFields.agent),
    configDir: clearable(profileFields.configDir),
    provider: clearable(ProviderRef),
    description: clearable(profileFields.description),
    defaults: clearable(ProfileDefaults),
    session: clearable(ProfileSession),
    trustWorkspace: clearable(profileFields.trustWorkspace),
  },
  {
    ...strict,
    description:
      'What changes in a profile: `null` clears a field, an object replaces that object, what is absent stays.',
  },
)
export type UpdateProfileRequest = Static<typeof UpdateProfileRequest>

/**
 * A managed profile as a ProfileStore keeps it. `generation` tells it from an earlier or later one of the same name; a store that
 * was filled by hand may lack it.
 */
export const StoredProfile = Type.Object(
  {
    name: ProfileName(),
    ...profileFields,
    managed: Type.Optional(Type.Literal(true)),
    generation: Type.Optional(Type.String()),
  },
  strict,
)
export type StoredProfile = Static<typeof StoredProfile>

export const ProfileInfo = Type.Object(
  {
    name: Type.String(),
    ...profileFields,
    engine: Engine,
    managed: Type.Optional(described(Type.Literal(true), 'It was created over this API, and can be changed over it.')),
    trustsWorkspace: Type.Optional(
      described(
        Type.Literal(true),
        'Its agent cannot be kept from what files of the working directory would have it run.',
      ),
    ),
    credentials: Type.Optional(
      described(StringEnum('logged_in', 'logged_out', 'unknown'), 'What the last look at the login of its agent gave.'),
    ),
  },
  { description: 'A profile: who sessions run as. No credential is ever in it.' },
)
export type ProfileInfo = Static<typeof ProfileInfo>

export const ListProfilesResponse = Type.Object(
  { profiles: Type.Array(ProfileInfo), canManage: Flag('Whether this caller may create further ones.') },
  { description: 'The profiles that the caller may use.' },
)
export type ListProfilesResponse = Static<typeof ListProfilesResponse>

export const PermissionRuleCounts = Type.Object(
  {
    allow: Type.Integer({ description: 'Rules that let tools run without asking.' }),
    ask: Type.Integer({ description: 'Rules that have somebody asked first.' }),
    deny: Type.Integer({ description: 'Rules that keep tools from running.' }),
  },
  { description: 'How many permission rules there are of each kind; not the rules.' },
)

export const SettingsHighlights = Type.Object(
  {
    model: Type.Optional(Type.String()),
    defaultPermissionMode: Type.Optional(Type.String()),
    permissionRules: Type.Optional(PermissionRuleCounts),
    envKeys: Type.Optional(Type.Array(Type.String(), { description: 'Names of variables, without their values.' })),
    hooks: Type.Optional(Type.Array(Type.String(), { description: 'Names of events that have hooks, not the hooks.' })),
  },
  { description: "What stands in the agent's settings, by name and never by value." },
)
export type SettingsHighlights = Static<typeof SettingsHighlights>

export const ConfigSnapshot = Type.Object(
  {
    settings: Type.Optional(SettingsHighlights),
    hasUserMemory: Flag('Whether the agent has a memory file for its user.'),
    memory: Type.Optional(
      Type.Object({
        bytes: Type.Integer({ description: 'Size of the whole file.' }),
        preview: Text('How it begins.'),
      }),
    ),
    skills: Type.Array(Type.String(), { description: 'Names.' }),
    agents: Type.Array(Type.String(), { description: 'Names of helpers.' }),
    commands: Type.Array(Type.String(), { description: 'Names.' }),
  },
  { description: "What lies in a profile's config directory right now, for viewing." },
)
export type ConfigSnapshot = Static<typeof ConfigSnapshot>

export const GetProfileResponse = Type.Object(
  { profile: ProfileInfo, config: ConfigSnapshot },
  { description: 'A profile, and what lies in its config directory.' },
)
export type GetProfileResponse = Static<typeof GetProfileResponse>

/** Any string: a name that no profile can have is unknown, not malformed. */
export const ProfileParams = Type.Object({ name: Text('Of the profile.') })
