import { sentenceOf } from '../api.js'
import { isOfBefore } from '../state/build.js'
import { here } from '../state/clock.js'
import type { Link } from '../state/link.js'
import { isUnauthorized } from '../state/me.js'
import { texts } from '../texts.js'

const { connection: says } = texts.shell

/** What a link is at, in words. */
export function wordsOf(link: Link, at: number): string {
  switch (link.state) {
    case 'connecting':
      return says.connecting
    case 'live':
      return says.live
    case 'catching-up':
      return says.catchingUp
    case 'back':
      return link.missed ? says.gap : says.caughtUp
    case 'away':
      return says.reconnecting(Math.ceil((link.retryAt - at) / 1000))
    case 'ended':
      if (isUnauthorized(link.error)) return says.signedOut
      return link.error === undefined ? says.live : says.ended(sentenceOf(link.error))
  }
}

/** How things stand, always in sight: a mark and a word. */
export const ConnectionMark = ({ link }: { link: Link }) => (
  <p class={`link-mark link-${link.state}`}>
    <span class="mark" aria-hidden="true" />
    {wordsOf(link, here.value)}
  </p>
)

/**
 * Says what is worth knowing: that we are away, or that we are back and whether something was missed, and that the gateway has another
 * version of this page. Below what there is to press, which must not move under whoever presses it as the connection goes and comes.
 */
export function ConnectionBar({ link }: { link: Link }) {
  // that nobody is signed in is said where they sign in
  const isEnded = link.state === 'ended' && link.error !== undefined && !isUnauthorized(link.error)
  const isShown = link.state === 'away' || link.state === 'back' || isEnded
  const isBad = isShown && (link.state !== 'back' || link.missed)
  const isOlder = isOfBefore.value
  const words = isShown ? (link.state === 'away' ? says.reconnecting(0) : wordsOf(link, 0)) : ''
  return (
    <div class="connection-bar" data-shown={isShown || isOlder} data-bad={isBad}>
      {/* the countdown is for the eye; who listens is told the state once */}
      {isShown && <span aria-hidden="true">{wordsOf(link, here.value)}</span>}
      {link.state === 'away' && <span class="quiet-text">{says.offline}</span>}
      {/* without when it may be tried again: the countdown says that */}
      {link.state === 'away' && link.error && <span class="quiet-text">{link.error.detail}</span>}
      <span class="unseen" role="status">
        {words}
      </span>
      <span role="status">{isOlder && says.ofBefore}</span>
      {isOlder && (
        <button type="button" class="as-link" onClick={() => location.reload()}>
          {texts.shell.loadAnew}
        </button>
      )}
    </div>
  )
}
