import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { rowsOf } from '../model/transcript-rows.js'
import { ConnectionBar } from '../parts/connection.js'
import { Icon } from '../parts/icon.js'
import { Failure, Loading } from '../parts/notice.js'
import { Place } from '../parts/place.js'
import { feedLink } from '../state/feed.js'
import { isUnauthorized, signedIn } from '../state/me.js'
import '../styles/transcript.css'
import { lead } from '../parts/second-press.js'
import { texts } from '../texts.js'
import { Composer } from './transcript/composer.js'
import { useDrawn } from './transcript/drawn.js'
import { useEnd } from './transcript/end.js'
import { Find } from './transcript/find.js'
import { Head } from './transcript/head.js'
import { Row, Streaming } from './transcript/items.js'
import { UNSURE } from './transcript/outgoing.js'
import { TranscriptState } from './transcript/state.js'
import { WaitedFor } from './transcript/waited-for.js'

const says = texts.transcript
/** So near the end counts as at the end. */
const NEAR_PX = 48
/** So near an end of the window, its next part is fetched. */
const FETCH_PX = 3_000

/** One session: what was said and done, what it waits for, and what to say next. */
export function TranscriptScreen({ id, seq }: { id: string; seq: number | undefined }) {
  const state = useMemo(() => new TranscriptState(id), [id])
  const section = useRef<HTMLElement>(null)
  const scroller = useRef<HTMLDivElement>(null)
  const isFollowing = useSignal(seq === undefined)
  const isFinding = useSignal(false)
  /** Something was to be fetched while much was still to be drawn, or something else was fetched. */
  const isRefused = useRef(false)

  useEffect(() => {
    void state.open(seq)
    return () => state.close()
  }, [state])
  const who = signedIn.value
  const isThere = feedLink.value.state === 'live' || feedLink.value.state === 'back'
  useEffect(() => {
    if (who !== undefined && isThere) state.resume(seq)
  }, [who, isThere])

  // the address names a line: another one of the same session moves the window
  const address = useRef(seq)
  const isLoaded = state.isLoaded.value
  useEffect(() => {
    if (!isLoaded || seq === address.current) return
    address.current = seq
    if (seq !== undefined) void state.to(seq)
  }, [seq, isLoaded])

  const { transcript, atStart, atEnd, isCut, isFull } = state.view.value
  const { rows, streaming, nested } = useMemo(() => rowsOf(transcript), [transcript])
  const wanted = state.wanted.value
  const isGone = state.isGone.value
  const isReached = wanted !== undefined && state.reaches(wanted)
  // the log says first which of them it has
  const outgoing = state.outgoing.messages.value.filter(({ error }) => state.isLoaded.value || error !== UNSURE)
  const { drawn, isWhole, isNearlyWhole, atFirst } = useDrawn(rows, typeof wanted === 'number' ? wanted : undefined)

  // before the first line it says how far the log reaches back: lines come below that
  const place = useMemo(() => new Place(({ firstElementChild }) => firstElementChild, 1), [])
  const end = useEnd(
    scroller,
    place,
    () => isFollowing.value && state.view.value.atEnd,
    () => {
      // whoever sees the line goes where they like, though not all around it is drawn
      const { value } = state.wanted
      if (value !== undefined && state.reaches(value)) state.arrive()
    },
  )
  useLayoutEffect(() => {
    const element = scroller.current
    if (!element || !state.isLoaded.value) return
    place.keep(element)
    if (typeof wanted === 'number') {
      isFollowing.value = false
      // its part of the log is on its way
      const line = isReached ? lineAt(element, wanted) : undefined
      if (!line) return
      unfold(line)
      line.scrollIntoView({ block: line.offsetHeight > element.clientHeight ? 'start' : 'center' })
      lead(line, { preventScroll: true })
      place.note(element)
      // what is drawn above it later would move it
      if (!isWhole) return
      state.arrive()
      onScroll()
      return
    }
    if (isReached) {
      isFollowing.value = true
      end.hold()
      state.arrive()
    }
    if (isFollowing.value && atEnd) element.scrollTop = element.scrollHeight
    place.note(element)
  })

  const onScroll = (): void => {
    const element = scroller.current
    if (!element) return
    place.note(element)
    const { scrollTop, scrollHeight, clientHeight } = element
    const below = scrollHeight - scrollTop - clientHeight
    // whoever is on their way elsewhere does not stay here
    if (state.wanted.value === undefined) isFollowing.value = atEnd && below < NEAR_PX
    const canFetch = isNearlyWhole && !state.isBusy
    if (scrollTop < FETCH_PX && !atStart) {
      // browsers keep the place when something comes above, but not at the very top
      if (scrollTop === 0) element.scrollTop = 1
      if (canFetch) void state.earlier()
      else isRefused.current = true
    } else if (below < FETCH_PX && !atEnd) {
      if (canFetch) void state.later()
      else isRefused.current = true
    }
  }
  // whoever scrolled meanwhile need not scroll again
  useEffect(() => {
    if (!isNearlyWhole || !isRefused.current || state.isBusy) return
    isRefused.current = false
    onScroll()
  })
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (!(event.metaKey || event.ctrlKey) || event.key !== 'f' || event.shiftKey) return
      // a page that nobody has touched yet has the focus nowhere
      const target = event.target as HTMLElement
      const isHere = target === document.body || section.current?.contains(target)
      // behind a dialog nothing can be searched
      if (!isHere || target.closest('dialog')) return
      event.preventDefault()
      isFinding.value = true
    }
    document.addEventListener('keydown', onKeyDown)
    return () => document.removeEventListener('keydown', onKeyDown)
  }, [])

  // a window that does not fill the screen has nothing to scroll
  useEffect(() => {
    const element = scroller.current
    if (!element || !isWhole || !state.isLoaded.value || atStart || isFull) return
    if (element.scrollHeight <= element.clientHeight) void state.earlier()
  }, [transcript, atStart, isWhole])

  return (
    <section ref={section} class="page page-fills transcript">
      <Head
        state={state}
        onFind={() => {
          isFinding.value = !isFinding.value
        }}
        onBegin={state.toStart}
      />
      <WaitedFor state={state} />
      {isFinding.value && (
        <Find
          state={state}
          onGo={(place) => void state.to(place)}
          onClose={() => {
            isFinding.value = false
          }}
        />
      )}
      {state.error.value !== undefined && !isUnauthorized(state.error.value) && (
        <Failure error={state.error.value} {...(!isGone && { retry: () => void state.tryAgain(seq) })} />
      )}
      {!state.isLoaded.value && state.error.value === undefined && <Loading />}
      <div class="scroller" ref={scroller} onScroll={onScroll}>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by keyboard */}
        <div class="lines" role="log" aria-label={says.log} aria-live="off" tabIndex={0}>
          {state.isLoaded.value && (
            <p class="quiet-text lines-begin">
              {atStart && atFirst ? (isCut ? says.cut : says.begin) : texts.shell.loading}
            </p>
          )}
          {drawn.map((item) => (
            <Row key={`${item.kind}${item.seq}`} item={item} nested={nested} state={state} />
          ))}
          {atEnd && <Streaming messages={streaming} />}
          {outgoing.map((message) => (
            <div key={message.id} class="line line-user outgoing" data-failed={message.error !== undefined}>
              <p dir="auto" class="outgoing-text">
                {message.text}
              </p>
              {message.error === undefined ? (
                <p class="quiet-text">{says.onItsWay}</p>
              ) : (
                <div class="form-row">
                  <Failure error={message.error} retry={() => void state.outgoing.sendAgain(message)} />
                  <button type="button" class="quiet" onClick={() => state.outgoing.drop(message.id)}>
                    {texts.shell.dismiss}
                  </button>
                </div>
              )}
            </div>
          ))}
        </div>
      </div>
      {!(isFollowing.value && atEnd) && state.isLoaded.value && (
        <div class="to-live">
          <button type="button" onClick={() => void state.toEnd()}>
            <Icon name="down" />
            {state.unseen.value > 0 ? says.newer(state.unseen.value) : says.toLive}
          </button>
        </div>
      )}
      <ConnectionBar link={state.link.value} />
      <Composer state={state} isRemoved={isGone} onSent={() => void state.toEnd()} />
    </section>
  )
}

/** The line that an event is in: the last that began at it or before. Before the first there is none. */
function lineAt(element: HTMLElement, seq: number): HTMLElement | undefined {
  let found = element.querySelector<HTMLElement>('[data-seq]') ?? undefined
  let foundSeq = -1
  // what a helper said stands under its call, before what was said meanwhile
  for (const line of element.querySelectorAll<HTMLElement>('[data-seq]')) {
    const lineSeq = Number(line.dataset.seq)
    if (lineSeq > seq || lineSeq <= foundSeq) continue
    found = line
    foundSeq = lineSeq
  }
  return found
}

/** Opens what a line is folded away in. */
function unfold(line: HTMLElement): void {
  for (let around = line.closest('details'); around; around = around.parentElement?.closest('details') ?? null)
    around.open = true
}
