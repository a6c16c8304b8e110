import { useSignal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import type { CreateSessionRequest, SdkSession } from '../../../../client/index.js'
import { client } from '../../api.js'
import { Failure } from '../../parts/notice.js'
import { Time } from '../../parts/time.js'
import { Line } from '../../parts/untrusted.js'
import { texts } from '../../texts.js'

const says = texts.start

interface AdoptProps {
  profile: string
  directory: string
  isBusy: boolean
  onChoose: (more: Partial<CreateSessionRequest>) => void
}

/** Sessions that agents keep on disk, to go on with: in them, or in a copy. */
export function Adopt({ profile, directory, isBusy, onChoose }: AdoptProps) {
  const found = useSignal<SdkSession[] | undefined>(undefined)
  const error = useSignal<unknown>(undefined)
  const searches = useRef(0)
  const find = async (): Promise<void> => {
    const mine = ++searches.current
    const query = { ...(profile && { profile }), ...(directory && { dir: directory }), limit: 50 }
    error.value = undefined
    const result = await client.sdkSessions.list(query).then(
      (sessions) => ({ sessions }),
      (failure: unknown) => ({ failure }),
    )
    // what was looked for before, in another place, is not what is asked for now
    if (mine !== searches.current) return
    if ('sessions' in result) found.value = result.sessions
    else {
      found.value = undefined
      error.value = result.failure
    }
  }
  const choose = ({ sessionId, cwd, profile: owner }: SdkSession, forkSession: boolean): void =>
    onChoose({
      resume: sessionId,
      ...(forkSession && { forkSession }),
      ...(cwd && { cwd }),
      ...(owner && { profile: owner }),
    })
  return (
    <>
      <div class="form-row">
        <button type="button" onClick={() => void find()}>
          {says.find}
        </button>
        <span class="hint">{says.forkHint}</span>
      </div>
      {error.value !== undefined && <Failure error={error.value} />}
      {found.value?.length === 0 && <p class="quiet-text">{says.noneFound}</p>}
      <ul class="adopt-list">
        {found.value?.map((session) => (
          <li key={session.sessionId}>
            <div>
              <Line text={session.summary || session.firstPrompt || session.sessionId} length={140} />
              <p class="quiet-text">
                <Time at={session.lastModified} />
                {session.gitBranch && (
                  <>
                    {' · '}
                    <Line text={session.gitBranch} length={60} />
                  </>
                )}
              </p>
            </div>
            <button type="button" aria-disabled={isBusy} onClick={() => choose(session, false)}>
              {says.resume}
            </button>
            <button type="button" aria-disabled={isBusy} onClick={() => choose(session, true)}>
              {says.fork}
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}
