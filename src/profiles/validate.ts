import { PROVIDER_PERMISSION_MODES } from '../../schemas/permissions.js'
import { type ProfileInfo, ProfileOptions } from '../../schemas/profiles.js'
import { type AgentRow, DEFAULT_AGENT } from '../engines/cli/agent-table.js'
import { providerProblem } from '../engines/provider/index.js'
import { GatewayError, invalidField } from '../errors.js'
import { type Checker, compileSchema } from '../lib/validation.js'

/** What decides whether a profile can run here. */
export interface ProfileRules {
  agents: ReadonlyMap<string, AgentRow>
  hasEngineRunner: boolean
  /** Whether the host builds the runners of provider profiles, and knows of which providers. Default: the bundled engine does. */
  isHostsEngine?: boolean | undefined
}

const shape: Checker<ProfileOptions> = compileSchema(ProfileOptions)

/** A refusal of one field, for a reason that its type does not tell. */
const invalid = (path: string, message: string) => invalidField(path, message, 'SG_ERR_PROFILE_INVALID')

/**
 * The one validation of declared and of managed profiles. It does not look at the disk; `config-dir.ts` does.
 * @param input anything
 * @returns a frozen copy, with `engine` filled in
 * @throws GatewayError 400, naming the field
 */
export function validateProfile(input: unknown, rules: ProfileRules): ProfileInfo {
  shape.assert(input)
  // Through JSON: no member stays undefined, and nothing is shared with an object that the host may change.
  const profile = JSON.parse(JSON.stringify(input)) as ProfileOptions
  if (profile.engine === 'provider') assertProvider(profile, rules)
  else assertCli(profile, rules)
  const { name, engine = 'cli', ...rest } = profile
  return freeze({ name, engine, ...rest })
}

/** All the way down: hosts get to see profiles, and one that changed what it was shown would change who others run as. */
function freeze<T extends object>(value: T): T {
  for (const member of Object.values(value)) if (typeof member === 'object' && member !== null) freeze(member)
  return Object.freeze(value)
}

function assertProvider(
  { configDir, agent, trustWorkspace, provider, defaults }: ProfileOptions,
  rules: ProfileRules,
): void {
  if (configDir !== undefined) throw invalid('configDir', 'is for cli profiles.')
  if (agent !== undefined) throw invalid('agent', 'is for cli profiles.')
  if (trustWorkspace !== undefined) throw invalid('trustWorkspace', 'is for cli profiles.')
  if (!rules.hasEngineRunner) throw invalid('engine', 'a provider profile needs the option createEngineRunner.')
  const unknown = rules.isHostsEngine ? undefined : providerProblem(provider)
  if (unknown) throw invalid(unknown.path, unknown.message)
  const problem = provider?.baseUrl === undefined ? undefined : baseUrlProblem(provider.baseUrl)
  if (problem !== undefined) throw invalid('provider.baseUrl', problem)
  const mode = defaults?.permissionMode
  if (mode !== undefined && !PROVIDER_PERMISSION_MODES.includes(mode))
    throw invalid(
      'defaults.permissionMode',
      `the provider engine has ${PROVIDER_PERMISSION_MODES.join(', ')}, not ${mode}.`,
    )
}

/** Profiles are shown to callers, so an address must not carry a credential; and an API's base has nothing behind its path. */
export function baseUrlProblem(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) return 'must be an http or https URL.'
  const carriesMore = url.username || url.password || /[?#]/.test(text)
  return carriesMore ? 'must carry no user name, password, query or fragment.' : undefined
}

function assertCli({ agent = DEFAULT_AGENT, provider, session, defaults }: ProfileOptions, rules: ProfileRules): void {
  if (provider !== undefined) throw invalid('provider', 'is for provider profiles; set engine to provider.')
  if (session !== undefined) throw invalid('session', 'is for provider profiles; set engine to provider.')
  const row = rules.agents.get(agent)
  if (!row) throw invalid('agent', `there is no agent ${agent}; there are ${[...rules.agents.keys()].join(', ')}.`)
  const mode = defaults?.permissionMode
  if (mode !== undefined && !row.permissionModes.includes(mode))
    throw invalid('defaults.permissionMode', `${row.name} has ${row.permissionModes.join(', ')}, not ${mode}.`)
}

/** A default would let every request in by a door that the option closed. */
export function assertBypassAllowed(profile: ProfileInfo, disableBypassPermissions: boolean): void {
  if (disableBypassPermissions && profile.defaults?.permissionMode === 'bypassPermissions')
    throw new GatewayError('SG_ERR_BYPASS_DISABLED', {
      detail: 'defaults.permissionMode: bypassPermissions is disabled on this gateway.',
      errors: [{ path: 'defaults.permissionMode', message: 'bypassPermissions is disabled on this gateway.' }],
    })
}
