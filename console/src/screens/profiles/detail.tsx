import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo } from 'preact/hooks'
import { GatewayError, type GetProfileResponse } from '../../../../client/index.js'
import { client } from '../../api.js'
import { bytes } from '../../model/format.js'
import { visibleLine } from '../../model/visible.js'
import { Confirm } from '../../parts/confirm.js'
import { Fact } from '../../parts/fact.js'
import { Empty, Failure, Loading } from '../../parts/notice.js'
import { Page } from '../../parts/page.js'
import { lead } from '../../parts/second-press.js'
import { Line, Text } from '../../parts/untrusted.js'
import { goer, hrefTo } from '../../route.js'
import { access } from '../../state/me.js'
import { Rereading } from '../../state/reread.js'
import { texts } from '../../texts.js'
import { Credentials, runsOn } from '../profiles.js'
import { ProfileEditor } from './form.js'

const says = texts.profiles
const isMissing = (error: unknown): boolean => error instanceof GatewayError && error.status === 404

/** One profile, and what lies in its config directory. */
export function ProfileDetail({ name }: { name: string }) {
  const found = useSignal<GetProfileResponse | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  const refusal = useSignal<unknown>(undefined)
  /** As it was told last: what goes wrong since brings nothing back. */
  const isMissed = useSignal(false)
  const doing = useSignal<'edit' | 'remove' | undefined>(undefined)
  const fail = (failure: unknown): void => {
    error.value = failure
    if (isMissing(failure)) isMissed.value = true
  }
  const reading = useMemo(
    () =>
      new Rereading(async (signal) => {
        try {
          found.value = await client.profiles.get(name, { signal })
          isMissed.value = false
          error.value = undefined
        } catch (failure) {
          if (!signal.aborted) fail(failure)
        }
      }),
    [],
  )
  useEffect(() => reading.followLooks(), [])
  const close = (): void => {
    doing.value = undefined
  }
  const remove = async (): Promise<void> => {
    close()
    refusal.value = undefined
    const go = goer()
    try {
      await client.profiles.remove(name)
      go(hrefTo('profiles'))
    } catch (failure) {
      if (isMissing(failure)) fail(failure)
      else refusal.value = failure
    }
  }
  const now = access.value
  const mayManage = now.state === 'in' && now.me.caller?.canManageProfiles === true
  const profile = found.value?.profile
  const isGone = isMissed.value
  const isAtActions = document.activeElement?.closest('.page-actions') != null
  useLayoutEffect(() => {
    // what it was on goes with the profile
    if (isGone && isAtActions) lead(document.querySelector<HTMLElement>('main h1'))
  }, [isGone])
  return (
    <Page
      title={visibleLine(name, 64)}
      back={{ href: hrefTo('profiles'), label: says.back }}
      actions={
        profile?.managed &&
        mayManage &&
        !isGone && (
          <>
            <button type="button" onClick={() => (doing.value = 'edit')}>
              {says.edit}
            </button>
            <button type="button" class="danger" onClick={() => (doing.value = 'remove')}>
              {says.remove}
            </button>
          </>
        )
      }
    >
      {isGone && <Empty>{says.gone}</Empty>}
      {error.value !== undefined && !isMissing(error.value) && (
        <Failure error={error.value} retry={() => reading.again()} />
      )}
      {refusal.value !== undefined && !isGone && <Failure error={refusal.value} />}
      {!found.value && error.value === undefined && <Loading />}
      {found.value && !isGone && (
        <div class="profile-detail">
          <Facts {...found.value} />
          <Snapshot {...found.value} />
        </div>
      )}
      {doing.value === 'edit' && profile && (
        <ProfileEditor profile={profile} onClose={close} onSaved={() => reading.again()} />
      )}
      {doing.value === 'remove' && (
        <Confirm
          title={says.removeTitle(visibleLine(name, 64))}
          lead={says.removeLead}
          action={says.removeNow}
          onConfirm={() => void remove()}
          onClose={close}
        />
      )}
    </Page>
  )
}

function Facts({ profile }: GetProfileResponse) {
  const { provider, defaults, session } = profile
  return (
    <section>
      <h2>{says.facts}</h2>
      {profile.description && <Text text={profile.description} class="prose" />}
      {!profile.managed && <p class="quiet-text">{says.declaredLead}</p>}
      <dl class="fact-list">
        <Fact name={says.engine}>
          {says.engines[profile.engine]} <Line text={runsOn(profile)} class="mono" />
        </Fact>
        {profile.credentials && (
          <Fact name={says.signedIn}>
            <Credentials state={profile.credentials} />
          </Fact>
        )}
        {profile.configDir && (
          <Fact name={says.configDir}>
            <Line text={profile.configDir} class="mono" />
          </Fact>
        )}
        {provider?.baseUrl && (
          <Fact name={says.baseUrl}>
            <Line text={provider.baseUrl} class="mono" />
          </Fact>
        )}
        {provider?.apiKeyEnv && (
          <Fact name={says.apiKeyEnv}>
            <Line text={provider.apiKeyEnv} class="mono" />
          </Fact>
        )}
        {provider?.models && (
          <Fact name={says.models}>
            <Names all={provider.models} />
          </Fact>
        )}
        {defaults?.model && (
          <Fact name={says.model}>
            <Line text={defaults.model} class="mono" />
          </Fact>
        )}
        {defaults?.permissionMode && <Fact name={says.defaultMode}>{texts.modes[defaults.permissionMode]}</Fact>}
        {session && (
          <>
            <Fact name={says.capabilities}>
              <Names all={(session.capabilities ?? []).map((one) => says.capabilityNames[one] ?? one)} />
            </Fact>
            <Fact name={says.mcpServers}>
              <Names all={session.mcpServers ?? []} />
            </Fact>
            {session.instructions && (
              <Fact name={says.instructions}>
                <Text text={session.instructions} first={1_000} class="prose" />
              </Fact>
            )}
          </>
        )}
      </dl>
      {profile.trustsWorkspace && <p class="notice">{says.trusts}</p>}
    </section>
  )
}

const MAX_NAMES = 100

const Names = ({ all }: { all: readonly string[] }) =>
  all.length === 0 ? (
    <span class="quiet-text">{says.noneOf}</span>
  ) : (
    <ul class="names">
      {all.slice(0, MAX_NAMES).map((one, at) => (
        <li key={at}>
          <Line text={one} length={80} class="tag" />
        </li>
      ))}
      {all.length > MAX_NAMES && <li class="quiet-text">{says.andMore(all.length - MAX_NAMES)}</li>}
    </ul>
  )

function Snapshot({ config }: GetProfileResponse) {
  const { settings, memory } = config
  const lists = (
    [
      [says.skills, config.skills],
      [says.agents, config.agents],
      [says.commands, config.commands],
      [says.envKeys, settings?.envKeys ?? []],
      [says.hooks, settings?.hooks ?? []],
    ] as const
  ).filter(([, all]) => all.length > 0)
  const rules = settings?.permissionRules
  const isEmpty = lists.length === 0 && !memory && !settings
  return (
    <section>
      <h2>{says.snapshot}</h2>
      {isEmpty ? (
        <p class="quiet-text">{says.snapshotEmpty}</p>
      ) : (
        <dl class="fact-list">
          {settings?.model && (
            <Fact name={says.model}>
              <Line text={settings.model} class="mono" />
            </Fact>
          )}
          {settings?.defaultPermissionMode && (
            <Fact name={says.defaultMode}>
              <Line text={settings.defaultPermissionMode} class="mono" />
            </Fact>
          )}
          {rules && <Fact name={says.permissionRules}>{says.rules(rules.allow, rules.ask, rules.deny)}</Fact>}
          {lists.map(([name, all]) => (
            <Fact key={name} name={name}>
              <Names all={all} />
            </Fact>
          ))}
          {memory && (
            <Fact name={says.memory}>
              <span class="quiet-text">{bytes(memory.bytes)}</span>
              <Text text={memory.preview} first={2_000} />
            </Fact>
          )}
        </dl>
      )}
    </section>
  )
}
