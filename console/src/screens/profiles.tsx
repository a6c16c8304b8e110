import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { ListProfilesResponse, ProfileInfo } from '../../../client/index.js'
import { client } from '../api.js'
import { Create } from '../parts/create.js'
import { Empty, Reading } from '../parts/notice.js'
import { Page } from '../parts/page.js'
import { Line } from '../parts/untrusted.js'
import { hrefTo, route } from '../route.js'
import { Rereading } from '../state/reread.js'
import '../styles/profiles.css'
import { texts } from '../texts.js'
import { ProfileDetail } from './profiles/detail.js'
import { ProfileEditor } from './profiles/form.js'

const says = texts.profiles

/** Who sessions can run as, or one of them. */
export function screen() {
  const [name] = route.value.params
  return name === undefined ? <Profiles /> : <ProfileDetail key={name} name={name} />
}

function Profiles() {
  const list = useSignal<ListProfilesResponse | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  const isCreating = useSignal(false)
  const reading = useMemo(
    () =>
      new Rereading(async (signal) => {
        try {
          list.value = await client.profiles.list({ signal })
          error.value = undefined
        } catch (failure) {
          if (!signal.aborted) error.value = failure
        }
      }),
    [],
  )
  useEffect(() => reading.followLooks(), [])
  const profiles = list.value?.profiles
  return (
    <Page title={says.title} actions={list.value?.canManage && <Create label={says.create} isOpen={isCreating} />}>
      <Reading error={error.value} isLoaded={profiles !== undefined} retry={() => reading.again()} />
      {profiles?.length === 0 && <Empty>{says.none}</Empty>}
      {profiles && profiles.length > 0 && (
        <ul class="profiles">
          {profiles.map((profile) => (
            <Row key={profile.name} profile={profile} />
          ))}
        </ul>
      )}
      {isCreating.value && (
        <ProfileEditor
          onClose={() => {
            isCreating.value = false
          }}
          onSaved={({ name }, go) => go(hrefTo('profiles', name))}
        />
      )}
    </Page>
  )
}

export const Credentials = ({ state }: { state: NonNullable<ProfileInfo['credentials']> }) => (
  <span class={`credentials credentials-${state}`}>
    <span class="mark" aria-hidden="true" />
    {says.credentials[state] ?? state}
  </span>
)

/** What a profile runs on, in a few words. */
export const runsOn = (profile: ProfileInfo): string =>
  profile.engine === 'cli'
    ? (profile.agent ?? 'claude')
    : [profile.provider?.id, profile.provider?.model].filter(Boolean).join(' · ')

function Row({ profile }: { profile: ProfileInfo }) {
  return (
    <li>
      <a class="profile" href={hrefTo('profiles', profile.name)}>
        <Line text={profile.name} length={64} class="strong" />
        <span class="quiet-text">
          {says.engines[profile.engine]} <Line text={runsOn(profile)} length={80} />
        </span>
        {profile.description ? <Line text={profile.description} length={160} class="profile-about" /> : <span />}
        <span class="profile-marks">
          {profile.managed && <span class="tag">{says.managed}</span>}
          {profile.credentials && <Credentials state={profile.credentials} />}
        </span>
      </a>
    </li>
  )
}
