import { apiBase } from '../api.js'
import { ConnectionMark } from '../parts/connection.js'
import { Fact } from '../parts/fact.js'
import { Page } from '../parts/page.js'
import { SignOut } from '../parts/sign-out.js'
import { Line } from '../parts/untrusted.js'
import { feedLink } from '../state/feed.js'
import { access } from '../state/me.js'
import '../styles/settings.css'
import { texts } from '../texts.js'
import { Health } from './settings/health.js'
import { Push } from './settings/push.js'
import { SignIns } from './settings/sign-ins.js'

const says = texts.settings

/** How the gateway and the connection to it are, who is signed in where, and what this browser is told. */
export function screen() {
  const now = access.value
  const me = now.state === 'in' ? now.me : undefined
  return (
    <Page title={says.heading}>
      <div class="settings">
        <section>
          <h2>{says.connection}</h2>
          <ConnectionMark link={feedLink.value} />
          <p class="quiet-text">{says.connectionLead}</p>
          <dl class="fact-list">
            <Fact name={says.address}>
              <Line text={apiBase} class="mono" />
            </Fact>
          </dl>
        </section>
        <section>
          <h2>{says.you}</h2>
          {me?.required === false ? (
            <p class="quiet-text">{says.everybody}</p>
          ) : (
            <>
              <dl class="fact-list">
                {me?.caller?.name !== undefined && (
                  <Fact name={says.name}>
                    <Line text={me.caller.name} />
                  </Fact>
                )}
                {me && (
                  <Fact name={says.sees}>
                    {me.caller?.allowedProfiles ? (
                      <Line text={me.caller.allowedProfiles.join(', ')} length={300} />
                    ) : (
                      says.allProfiles
                    )}
                  </Fact>
                )}
              </dl>
              {me?.signIn && (
                <div>
                  <SignOut />
                </div>
              )}
            </>
          )}
        </section>
        {me?.required && me.signIn && <SignIns />}
        <Push isOn={me?.features?.webPush === true} name={me?.caller?.name} />
        <Health />
      </div>
    </Page>
  )
}
