import type { CreateProfileRequest, PermissionMode, ProfileInfo, UpdateProfileRequest } from '../../../client/index.js'

/** A managed profile as the fields of a form, and back. Pure. */

export interface ProfileForm {
  name: string
  engine: 'cli' | 'provider'
  description: string
  agent: string
  configDir: string
  trustWorkspace: boolean
  providerId: string
  providerModel: string
  /** One a line. */
  providerModels: string
  providerBaseUrl: string
  providerApiKeyEnv: string
  defaultModel: string
  defaultMode: string
  /** Whether it says at all what its sessions are granted. */
  limitsSession: boolean
  capabilities: readonly string[]
  /** One a line. */
  mcpServers: string
  instructions: string
}

export const EMPTY_PROFILE: ProfileForm = {
  name: '',
  engine: 'provider',
  description: '',
  agent: '',
  configDir: '',
  trustWorkspace: false,
  providerId: '',
  providerModel: '',
  providerModels: '',
  providerBaseUrl: '',
  providerApiKeyEnv: '',
  defaultModel: '',
  defaultMode: '',
  limitsSession: false,
  capabilities: [],
  mcpServers: '',
  instructions: '',
}

export const formOf = (profile: ProfileInfo): ProfileForm => ({
  name: profile.name,
  engine: profile.engine,
  description: profile.description ?? '',
  agent: profile.agent ?? '',
  configDir: profile.configDir ?? '',
  trustWorkspace: profile.trustWorkspace ?? false,
  providerId: profile.provider?.id ?? '',
  providerModel: profile.provider?.model ?? '',
  providerModels: (profile.provider?.models ?? []).join('\n'),
  providerBaseUrl: profile.provider?.baseUrl ?? '',
  providerApiKeyEnv: profile.provider?.apiKeyEnv ?? '',
  defaultModel: profile.defaults?.model ?? '',
  defaultMode: profile.defaults?.permissionMode ?? '',
  limitsSession: profile.session !== undefined,
  capabilities: profile.session?.capabilities ?? [],
  mcpServers: (profile.session?.mcpServers ?? []).join('\n'),
  instructions: profile.session?.instructions ?? '',
})

const lines = (text: string): string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

/** The profile that the form describes. What is wrong with it the gateway says. */
export function profileOf(form: ProfileForm): CreateProfileRequest {
  const isProvider = form.engine === 'provider'
  const text = <K extends string>(name: K, value: string) =>
    (value.trim() ? { [name]: value.trim() } : {}) as { [N in K]?: string }
  const models = lines(form.providerModels)
  const servers = lines(form.mcpServers)
  const defaults = {
    ...text('model', form.defaultModel),
    ...(form.defaultMode && { permissionMode: form.defaultMode as PermissionMode }),
  }
  return {
    name: form.name.trim(),
    engine: form.engine,
    ...text('description', form.description),
    ...(Object.keys(defaults).length > 0 && { defaults }),
    ...(isProvider
      ? {
          provider: {
            id: form.providerId.trim(),
            ...text('model', form.providerModel),
            ...(models.length > 0 && { models }),
            ...text('baseUrl', form.providerBaseUrl),
            ...text('apiKeyEnv', form.providerApiKeyEnv),
          },
          ...(form.limitsSession && {
            session: {
              capabilities: [...form.capabilities] as NonNullable<
                NonNullable<CreateProfileRequest['session']>['capabilities']
              >,
              mcpServers: servers,
              ...(form.instructions.trim() && { instructions: form.instructions }),
            },
          }),
        }
      : {
          ...text('agent', form.agent),
          ...text('configDir', form.configDir),
          ...(form.trustWorkspace && { trustWorkspace: true }),
        }),
  }
}

/** What is different, as a change takes it: `null` clears. Nothing is left out that somebody has cleared. */
export function changesOf(before: ProfileForm, after: ProfileForm): UpdateProfileRequest {
  const was: Record<string, unknown> = { ...profileOf(before) }
  const is: Record<string, unknown> = { ...profileOf(after) }
  const changes: Record<string, unknown> = {}
  for (const name of new Set([...Object.keys(was), ...Object.keys(is)])) {
    if (name === 'name' || JSON.stringify(was[name]) === JSON.stringify(is[name])) continue
    changes[name] = is[name] ?? null
  }
  return changes as UpdateProfileRequest
}

/**
 * What somebody has changed, put into what the profile is by now: a change replaces all of a `provider`, also what somebody else has changed in it.
 * @param before what was changed from
 * @param now what the profile has become since
 * @returns the form from now on, and the fields that both have changed, each in their way
 */
export function rebased(
  before: ProfileForm,
  form: ProfileForm,
  now: ProfileForm,
): { form: ProfileForm; clashes: (keyof ProfileForm)[] } {
  const differs = (name: keyof ProfileForm, one: ProfileForm, other: ProfileForm): boolean =>
    JSON.stringify(one[name]) !== JSON.stringify(other[name])
  const mine = (Object.keys(form) as (keyof ProfileForm)[]).filter((name) => differs(name, before, form))
  return {
    form: { ...now, ...Object.fromEntries(mine.map((name) => [name, form[name]])) },
    clashes: mine.filter((name) => differs(name, before, now) && differs(name, form, now)),
  }
}

const FIELDS: Record<string, keyof ProfileForm> = {
  name: 'name',
  engine: 'engine',
  description: 'description',
  agent: 'agent',
  configDir: 'configDir',
  trustWorkspace: 'trustWorkspace',
  provider: 'providerId',
  'provider.id': 'providerId',
  'provider.model': 'providerModel',
  'provider.models': 'providerModels',
  'provider.baseUrl': 'providerBaseUrl',
  'provider.apiKeyEnv': 'providerApiKeyEnv',
  defaults: 'defaultModel',
  'defaults.model': 'defaultModel',
  'defaults.permissionMode': 'defaultMode',
  session: 'limitsSession',
  'session.capabilities': 'capabilities',
  'session.mcpServers': 'mcpServers',
  'session.instructions': 'instructions',
}

/**
 * The refusals of the gateway, each at its field; `rest`: those for which the form has none.
 * @param errors `path` as the gateway gives it: `provider.baseUrl`, `session.mcpServers.0`
 */
export function refusalsAt(errors: readonly { path: string; message: string }[]): {
  at: ReadonlyMap<keyof ProfileForm, string>
  rest: readonly { path: string; message: string }[]
} {
  const at = new Map<keyof ProfileForm, string>()
  const rest: { path: string; message: string }[] = []
  for (const error of errors) {
    const parts = error.path.replace(/^\//, '').split(/[./]/)
    const found = [parts.slice(0, 2).join('.'), parts[0]!].map((path) => FIELDS[path]).find(Boolean)
    if (!found) rest.push(error)
    else at.set(found, [at.get(found), error.message].filter(Boolean).join(' '))
  }
  return { at, rest }
}
