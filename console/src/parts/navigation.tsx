import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { hrefTo, route } from '../route.js'
import { SCREENS, type Screen } from '../screens.js'
import { feedLink, waiting } from '../state/feed.js'
import { access } from '../state/me.js'
import { texts } from '../texts.js'
import { ConnectionMark } from './connection.js'
import { Icon } from './icon.js'
import { lead } from './second-press.js'
import { SignOut } from './sign-out.js'

const countFor = (screen: Screen): number =>
  screen.name === 'inbox' ? waiting.value.permissions + waiting.value.questions : 0

function Entry({ screen, onGo }: { screen: Screen; onGo: () => void }) {
  const count = countFor(screen)
  return (
    <li class={screen.isMinor ? 'minor' : undefined}>
      <a href={hrefTo(screen.name)} aria-current={route.value.name === screen.name ? 'page' : undefined} onClick={onGo}>
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
  const more = useRef<HTMLButtonElement>(null)
  const nav = useRef<HTMLElement>(null)
  const { name } = route.value
  useEffect(() => {
    isOpen.value = false
  }, [name])
  useEffect(() => {
    if (!isOpen.value) return
    // whoever presses elsewhere goes on there
    const onPress = ({ target }: PointerEvent): void => {
      if (!nav.current?.contains(target as Node)) isOpen.value = false
    }
    document.addEventListener('pointerdown', onPress)
    return () => document.removeEventListener('pointerdown', onPress)
  }, [isOpen.value])
  /** Also where somebody is already. What had the focus is not seen any more. */
  const close = (): void => {
    if (!isOpen.value) return
    isOpen.value = false
    lead(more.current)
  }
  return (
    <nav
      ref={nav}
      aria-label={texts.shell.navigation}
      data-open={isOpen.value}
      onKeyDown={(event) => {
        if (event.key === 'Escape') close()
      }}
    >
      <p class="product">
        <img src="./icon.svg" alt="" width="20" height="20" />
        {texts.shell.product}
      </p>
      <ul>
        {SCREENS.map((screen) => (
          <Entry key={screen.name} screen={screen} onGo={close} />
        ))}
        <li class="more-entry">
          <button
            ref={more}
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
