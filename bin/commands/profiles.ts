import { readFileSync } from 'node:fs'
import type { CreateProfileRequest, ProfileInfo, UpdateProfileRequest } from '../../client/index.js'
import { isRecord } from '../../src/lib/json-value.js'
import { type ConnectionOptions, connect } from '../terminal/connection.js'
import { CommandFailure, EXIT, offered, toEach } from '../terminal/exit.js'
import { note, type OutputOptions, printList, printOne } from '../terminal/output.js'
import { readStdin } from '../terminal/stdin.js'

type Options = ConnectionOptions & OutputOptions

export interface ProfileFlags {
  engine?: string
  agent?: string
  configDir?: string
  provider?: string
  model?: string
  baseUrl?: string
  apiKeyEnv?: string
  description?: string
  mode?: string
  /** A JSON file with all of it, `-` for standard input. */
  from?: string
  clear?: string[]
}

export async function list(options: Options): Promise<void> {
  const { profiles } = await connect(options).profiles.list()
  printList(
    profiles,
    [
      { title: 'name', of: ({ name }) => name, isWhole: true },
      { title: 'engine', of: ({ engine, agent, provider }) => agent ?? provider?.id ?? engine },
      { title: 'model', of: ({ provider, defaults }) => defaults?.model ?? provider?.model ?? '' },
      { title: 'managed', of: ({ managed }) => (managed ? 'yes' : 'no') },
      { title: 'login', of: ({ credentials }) => credentials?.replace('_', ' ') ?? '' },
      { title: 'description', of: ({ description }) => description ?? '', isWide: true },
    ],
    options,
  )
}

export async function show(name: string, options: Options): Promise<void> {
  const answer = await connect(options).profiles.get(name)
  const { profile, config } = answer
  printOne(
    answer,
    [
      ...fieldsOf(profile),
      ['memory', config.memory && `${config.memory.bytes} bytes`],
      ['skills', config.skills.join(', ')],
      ['agents', config.agents.join(', ')],
      ['commands', config.commands.join(', ')],
    ],
    options,
  )
}

const fieldsOf = (profile: ProfileInfo): [string, unknown][] => [
  ['name', profile.name],
  ['description', profile.description],
  ['engine', profile.engine],
  ['agent', profile.agent],
  ['config directory', profile.configDir],
  ['provider', profile.provider?.id],
  ['address', profile.provider?.baseUrl],
  ['model', profile.defaults?.model ?? profile.provider?.model],
  ['mode', profile.defaults?.permissionMode],
  ['managed', profile.managed ? 'yes' : 'no'],
  ['login', profile.credentials?.replace('_', ' ')],
]

export async function create(name: string, options: Options & ProfileFlags): Promise<void> {
  const given = await profileOf(options)
  const profile = await kept(connect(options).profiles.create({ ...given, name } as CreateProfileRequest))
  printOne(profile, fieldsOf(profile), options)
}

export async function edit(name: string, options: Options & ProfileFlags): Promise<void> {
  const cleared = Object.fromEntries((options.clear ?? []).map((field) => [field, null]))
  const gateway = connect(options)
  const given = await profileOf(options, async () => (await gateway.profiles.get(name)).profile)
  const changes = { ...given, ...cleared }
  const both = Object.keys(cleared).find((field) => field in given)
  if (both !== undefined)
    throw new CommandFailure(`${both} is both given and taken out by --clear: leave one of them out.`, EXIT.usage)
  if (Object.keys(changes).length === 0)
    throw new CommandFailure('Nothing is to be changed. See session-gateway profiles edit --help.', EXIT.usage)
  const profile = await kept(gateway.profiles.update(name, changes as UpdateProfileRequest))
  printOne(profile, fieldsOf(profile), options)
}

export async function remove(names: string[], options: Options): Promise<void> {
  const gateway = connect(options)
  await toEach(names, async (name) => {
    await kept(gateway.profiles.remove(name))
    note(`Removed ${name}.`)
  })
}

const kept = <T>(call: Promise<T>): Promise<T> =>
  offered(
    call,
    'This gateway keeps no profiles of its callers. Its operator turns that on with "profileStore": true in gateway.json.',
  )

type Fields = Record<string, unknown>

/**
 * What the flags say, on top of what the file says, or else of what the profile has: a change replaces all of an object.
 * @param readKnown the profile that is changed
 */
async function profileOf(
  flags: ProfileFlags,
  readKnown: () => Promise<Partial<ProfileInfo>> = async () => ({}),
): Promise<object> {
  const { engine, agent, configDir, provider, model, baseUrl, apiKeyEnv, description, mode } = flags
  const ref = withoutGaps({ id: provider, model: provider === undefined ? undefined : model, baseUrl, apiKeyEnv })
  const defaults = withoutGaps({ model: provider === undefined ? model : undefined, permissionMode: mode })
  const file: Fields = flags.from === undefined ? {} : await fileOf(flags.from)
  const known: Fields = { ...(ref || defaults ? await readKnown() : {}), ...file }
  // what is known of one provider is not true of another
  const isOther = provider !== undefined && provider !== (known.provider as Fields | undefined)?.id
  return {
    ...file,
    ...withoutGaps({
      engine: engine ?? (provider === undefined ? undefined : 'provider'),
      agent,
      configDir,
      description,
      provider: ref && { ...(!isOther && (known.provider as Fields | undefined)), ...ref },
      defaults: defaults && { ...(known.defaults as Fields | undefined), ...defaults },
    }),
  }
}

function withoutGaps(fields: Fields): Fields | undefined {
  const told = Object.entries(fields).filter(([, value]) => value !== undefined)
  return told.length > 0 ? Object.fromEntries(told) : undefined
}

async function fileOf(path: string): Promise<Fields> {
  const name = path === '-' ? 'Standard input' : path
  let fields: unknown
  try {
    fields = JSON.parse(path === '-' ? await readStdin() : readFileSync(path, 'utf8'))
  } catch (error) {
    throw new CommandFailure(`${name} cannot be read as JSON: ${(error as Error).message}`, EXIT.usage)
  }
  if (isRecord(fields)) return fields
  throw new CommandFailure(`${name} has no JSON object: a profile is one, as in { "description": "…" }.`, EXIT.usage)
}
