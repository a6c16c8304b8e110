import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { sentenceOf } from '../api.js'
import { NotLoaded } from '../loaded.js'
import { isUnauthorized, signedIn } from '../state/me.js'
import { texts } from '../texts.js'
import { lead } from './second-press.js'

/** Something that went wrong, and what can be done about it. That nobody was in is nothing any more, and not said, once somebody is. */
export function Failure({ error, retry }: { error: unknown; retry?: () => void }) {
  /** Who was in when it went wrong. */
  const by = useMemo(() => signedIn.peek(), [error])
  const who = signedIn.value
  if (!retry && isUnauthorized(error) && who !== undefined && who !== by) return null
  return (
    <div class="notice notice-bad" role="alert">
      <p dir="auto">{sentenceOf(error)}</p>
      {retry && <Again onClick={retry} />}
      {error instanceof NotLoaded && (
        <button type="button" class="quiet" onClick={() => location.reload()}>
          {texts.shell.loadAnew}
        </button>
      )}
    </div>
  )
}

/** It goes with what has failed: whoever has pressed it goes on at the heading, where no dialog says where. */
function Again({ onClick }: { onClick: () => void }) {
  const element = useRef<HTMLButtonElement>(null)
  useLayoutEffect(() => {
    const button = element.current
    return () => {
      if (document.activeElement !== button || button?.closest('dialog')) return
      lead(document.querySelector<HTMLElement>('main h1'), { preventScroll: true })
    }
  }, [])
  return (
    <button ref={element} type="button" class="quiet" onClick={onClick}>
      {texts.shell.tryAgain}
    </button>
  )
}

/** Where there is nothing to show. */
export const Empty = ({ children }: { children: ComponentChildren }) => <div class="empty">{children}</div>

/** Something is on its way; read out, but only when it takes a while. */
export const Loading = () => (
  <p class="loading" role="status">
    {texts.shell.loading}
  </p>
)

/** Of the whole page, which has nothing else to press when no answer ever comes. */
export const LoadingPage = () => (
  <>
    <Loading />
    <p class="loading overdue" role="status">
      {texts.shell.overdue}
      <button type="button" class="quiet" onClick={() => location.reload()}>
        {texts.shell.loadAnew}
      </button>
    </p>
  </>
)

/** In a form: what was asked for is on its way. */
export const Underway = ({ children = texts.shell.underway }: { children?: ComponentChildren }) => (
  <p class="loading underway quiet-text" role="status">
    {children}
  </p>
)

/** What a list says of its reading: that it failed, and that there is nothing yet. */
export const Reading = ({ error, isLoaded, retry }: { error: unknown; isLoaded: boolean; retry: () => void }) => {
  if (error !== undefined) return <Failure error={error} retry={retry} />
  return isLoaded ? null : <Loading />
}
