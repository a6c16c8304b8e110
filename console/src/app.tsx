import { useSignal, useSignalEffect } from '@preact/signals'
import type { FunctionComponent } from 'preact'
import { useEffect, useErrorBoundary } from 'preact/hooks'
import { loaded as loadedPart } from './loaded.js'
import { ConnectionBar } from './parts/connection.js'
import { Navigation } from './parts/navigation.js'
import { Failure, LoadingPage } from './parts/notice.js'
import { Page } from './parts/page.js'
import { SignIn } from './parts/sign-in.js'
import { route } from './route.js'
import { SCREENS } from './screens.js'
import { askForBuild } from './state/build.js'
import { feedLink, startFeed, stopFeed, waiting } from './state/feed.js'
import { access, findOut, keepAsking, signedIn } from './state/me.js'
import { followPresses, renewPush } from './state/push.js'
import { texts } from './texts.js'

/** The frame around the screens: who is in, where they are, and how the connection stands. */
export function App() {
  useEffect(() => void findOut(), [])
  const isUnreachable = access.value.state === 'unreachable'
  useEffect(() => (isUnreachable ? keepAsking() : undefined), [isUnreachable])
  const who = signedIn.value
  useEffect(() => {
    if (who === undefined) return
    void startFeed()
    const now = access.value
    if (now.state === 'in' && now.me.features?.webPush) void renewPush(now.me.caller?.name)
    return stopFeed
  }, [who])
  // also while nobody is in, who then signs in there
  useEffect(followPresses, [])
  // whoever is in may see other things since the gateway was started anew, and it may be another version
  const isBack = feedLink.value.state === 'back'
  useEffect(() => {
    if (!isBack) return
    void findOut()
    void askForBuild()
  }, [isBack])
  useSignalEffect(() => {
    const { permissions, questions } = waiting.value
    const count = permissions + questions
    const screen = SCREENS.find(({ name }) => name === route.value.name)
    document.title = `${count > 0 ? `(${count}) ` : ''}${screen ? `${screen.title} · ` : ''}${texts.shell.product}`
  })

  const now = access.value
  if (now.state === 'asking') return <LoadingPage />
  if (now.state === 'unreachable')
    return (
      <main class="alone">
        <Failure error={now.error} retry={() => void findOut()} />
      </main>
    )
  if (now.state === 'out' && !now.hasExpired) return <SignIn />
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={skip}>
        {texts.shell.skip}
      </button>
      <Navigation />
      <main id="main" tabIndex={-1}>
        {now.state === 'out' && <SignIn hasExpired />}
        <CurrentScreen />
        <ConnectionBar link={feedLink.value} />
      </main>
    </div>
  )
}

/** No link to a fragment: that is the route's. */
const skip = (): void => document.getElementById('main')?.focus()

function CurrentScreen() {
  const { name, params } = route.value
  const found = SCREENS.find((screen) => screen.name === name)
  const loaded = useSignal<{ name: string; screen?: FunctionComponent; error?: unknown } | undefined>(undefined)
  const [error, reset] = useErrorBoundary()
  /** How often a screen that did not come was asked for again. */
  const tries = useSignal(0)
  const isThere = feedLink.value.state === 'live' || feedLink.value.state === 'back'
  const retry = (): void => {
    if (loaded.peek()?.error) tries.value++
  }
  useEffect(() => {
    if (isThere) retry()
  }, [isThere])
  useEffect(() => {
    addEventListener('online', retry)
    return () => removeEventListener('online', retry)
  }, [])
  // what could not be drawn of one thing says nothing of the next
  useEffect(() => {
    if (error) reset()
  }, [name, ...params])
  useEffect(() => {
    // one that comes late must not take the place of the screen that was gone to meanwhile
    let isLeft = false
    const keep = (result: { screen?: FunctionComponent; error?: unknown }): void => {
      if (!isLeft) loaded.value = { name, ...result }
    }
    const part = found && loadedPart(found.load())
    part?.then(
      ({ screen }) => keep({ screen }),
      (failure) => keep({ error: failure }),
    )
    return () => {
      isLeft = true
    }
  }, [name, tries.value])
  if (!found) return <Page title={texts.shell.notFound}>{null}</Page>
  if (error) return <Failure error={error} retry={reset} />
  if (loaded.value?.name !== name) return <LoadingPage />
  if (loaded.value.error) return <Failure error={loaded.value.error} retry={retry} />
  const Screen = loaded.value.screen!
  return <Screen key={name} />
}
