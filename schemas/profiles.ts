import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { StringEnum, strict } from './common.js'
import { PermissionMode } from './permissions.js'
import { Capability, Engine } from './sessions.js'

export const PROFILE_NAME_PATTERN = '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$'

export const ProviderRef = Type.Object(
  {
    id: Type.String({ minLength: 1 }),
    model: Type.Optional(Type.String({ minLength: 1 })),
    models: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
    baseUrl: Type.Optional(Type.String({ minLength: 1 })),
    apiKeyEnv: Type.Optional(Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' })),
  },
  strict,
)
export type ProviderRef = Static<typeof ProviderRef>

export const ProfileDefaults = Type.Object(
  { model: Type.Optional(Type.String({ minLength: 1 })), permissionMode: Type.Optional(PermissionMode) },
  strict,
)

/** What a provider session is granted by name. Absent: whatever the host wired; present: nothing beyond it. */
export const ProfileSession = Type.Object(
  {
    capabilities: Type.Optional(Type.Array(Capability)),
    mcpServers: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
    instructions: Type.Optional(Type.String()),
  },
  strict,
)

const profileFields = {
  engine: Type.Optional(Engine),
  agent: Type.Optional(Type.String({ minLength: 1 })),
  configDir: Type.Optional(Type.String({ minLength: 1 })),
  provider: Type.Optional(ProviderRef),
  description: Type.Optional(Type.String()),
  defaults: Type.Optional(ProfileDefaults),
  session: Type.Optional(ProfileSession),
  /** Whether files of the working directory that can run commands are honoured; default false. */
  trustWorkspace: Type.Optional(Type.Boolean()),
}

/** A profile as the operator declares it, or as `POST /profiles` creates it. `engine` defaults to `cli`. */
export const ProfileOptions = Type.Object(
  { name: Type.String({ pattern: PROFILE_NAME_PATTERN }), ...profileFields },
  strict,
)
export type ProfileOptions = Static<typeof ProfileOptions>
export const CreateProfileRequest = ProfileOptions
export type CreateProfileRequest = ProfileOptions

const clearable = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([schema, Type.Null()]))

/** What changes in a managed profile: `null` clears a field, an object replaces that object, what is absent stays. */
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
  strict,
)
export type UpdateProfileRequest = Static<typeof UpdateProfileRequest>

/**
 * A managed profile as a ProfileStore keeps it. `generation` tells it from an earlier or later one of the same name; a store that
 * was filled by hand may lack it.
 */
export const StoredProfile = Type.Object(
  {
    name: Type.String({ pattern: PROFILE_NAME_PATTERN }),
    ...profileFields,
    managed: Type.Optional(Type.Literal(true)),
    generation: Type.Optional(Type.String()),
  },
  strict,
)
export type StoredProfile = Static<typeof StoredProfile>

export const ProfileInfo = Type.Object({
  name: Type.String(),
  ...profileFields,
  engine: Engine,
  managed: Type.Optional(Type.Literal(true)),
  /** Its agent cannot be kept from what files of the working directory would have it run. */
  trustsWorkspace: Type.Optional(Type.Literal(true)),
  credentials: Type.Optional(StringEnum('logged_in', 'logged_out', 'unknown')),
})
export type ProfileInfo = Static<typeof ProfileInfo>

export const ListProfilesResponse = Type.Object({ profiles: Type.Array(ProfileInfo), canManage: Type.Boolean() })
export type ListProfilesResponse = Static<typeof ListProfilesResponse>

/** Counts of permission rules, not the rules. */
export const PermissionRuleCounts = Type.Object({
  allow: Type.Integer(),
  ask: Type.Integer(),
  deny: Type.Integer(),
})

/** Named highlights of an agent's settings: `envKeys` are names of variables, `hooks` names of events; no value of either. */
export const SettingsHighlights = Type.Object({
  model: Type.Optional(Type.String()),
  defaultPermissionMode: Type.Optional(Type.String()),
  permissionRules: Type.Optional(PermissionRuleCounts),
  envKeys: Type.Optional(Type.Array(Type.String())),
  hooks: Type.Optional(Type.Array(Type.String())),
})
export type SettingsHighlights = Static<typeof SettingsHighlights>

/** What lies in a profile's config directory right now, for viewing. `memory.bytes` is the size of the whole file. */
export const ConfigSnapshot = Type.Object({
  settings: Type.Optional(SettingsHighlights),
  hasUserMemory: Type.Boolean(),
  memory: Type.Optional(Type.Object({ bytes: Type.Integer(), preview: Type.String() })),
  skills: Type.Array(Type.String()),
  agents: Type.Array(Type.String()),
  commands: Type.Array(Type.String()),
})
export type ConfigSnapshot = Static<typeof ConfigSnapshot>

export const GetProfileResponse = Type.Object({ profile: ProfileInfo, config: ConfigSnapshot })
export type GetProfileResponse = Static<typeof GetProfileResponse>

/** Any string: a name that no profile can have is unknown, not malformed. */
export const ProfileParams = Type.Object({ name: Type.String() })
