import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { hrefTo, route } from '../route.js'
import { SCREENS, type Screen } from '../screens.js'
import { feedLink, waiting } from '../state/feed.js'
import { access } from '../state/me.js'
import { texts } from '../texts.js'
import { ConnectionMark } from './connection.js'
import { Icon } from './icon.js'
import { SignOut } from './sign-out.js'

const countFor = (screen: Screen): number =>
  screen.name === 'inbox' ? waiting.value.permissions + waiting.value.questions : 0

function Entry({ screen }: { screen: Screen }) {
  const count = countFor(screen)
  return (
    <li class={screen.isMinor ? 'minor' : undefined}>
      <a href={hrefTo(screen.name)} aria-current={route.value.name === screen.name ? 'page' : undefined}>
        <Icon name={screen.icon} />
        <span>{screen.title}</span>
        {count > 0 && <b class="count">{count}</b>}
      </a>
    </li>
  )
}

/** On the left; on a phone a bar at the bottom, with what does not fit under "More". */
export function Navigation() {
  const isOpen = useSignal(false)
  const { name } = route.value
  useEffect(() => {
    isOpen.value = false
  }, [name])
  return (
    <nav aria-label={texts.shell.navigation} data-open={isOpen.value}>
      <p class="product">
        <img src="./icon.svg" alt="" width="20" height="20" />
        {texts.shell.product}
      </p>
      <ul>
        {SCREENS.map((screen) => (
          <Entry key={screen.name} screen={screen} />
        ))}
        <li class="more-entry">
          <button
            type="button"
            aria-expanded={isOpen.value}
            onClick={() => {
              isOpen.value = !isOpen.value
            }}
          >
            <Icon name="more" />
            <span>{texts.shell.more}</span>
          </button>
        </li>
      </ul>
      <footer>
        <ConnectionMark link={feedLink.value} />
        <Who />
      </footer>
    </nav>
  )
}

function Who() {
  const now = access.value
  if (now.state !== 'in') return null
  if (!now.me.required) return <p class="quiet-text">{texts.shell.open}</p>
  return (
    <div class="who">
      <span class="quiet-text">{texts.shell.signedInAs(now.me.caller?.name ?? '?')}</span>
      <SignOut class="as-link" />
    </div>
  )
}
