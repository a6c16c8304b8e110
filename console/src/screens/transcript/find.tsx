import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks'
import { client, sentenceOf } from '../../api.js'
import { type Hit, hitsIn } from '../../model/search.js'
import { visibleOutput } from '../../model/visible.js'
import { isOfComposing } from '../../parts/composing.js'
import { Icon } from '../../parts/icon.js'
import { lead } from '../../parts/second-press.js'
import { Time } from '../../parts/time.js'
import { texts } from '../../texts.js'
import type { TranscriptState } from './state.js'

const says = texts.transcript.finding
const MAX_HITS = 500
/** One letter of an alphabet is nearly everywhere; one of these can be a word. */
const IS_WORD = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u

interface FindProps {
  state: TranscriptState
  onGo: (seq: number) => void
  onClose: () => void
}

/** Finds a text in the whole log, page by page: nothing of it is kept but what was found. */
export function Find({ state, onGo, onClose }: FindProps) {
  const element = useRef<HTMLElement>(null)
  const input = useRef<HTMLInputElement>(null)
  const wanted = useSignal('')
  const hits = useSignal<readonly Hit[]>([])
  const progress = useSignal<string | undefined>(undefined)
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null
    lead(input.current)
    return () => {
      if (element.current?.contains(document.activeElement)) lead(before, { preventScroll: true })
    }
  }, [])
  useEffect(() => {
    hits.value = []
    const text = wanted.value.trim()
    if (text.length < 2 && !IS_WORD.test(text)) {
      progress.value = undefined
      return
    }
    const aborter = new AbortController()
    const { signal } = aborter
    const look = async (): Promise<void> => {
      progress.value = says.looking
      for await (const page of client.sessions.events(state.id, { signal }).pages()) {
        if (signal.aborted) return
        const found = hitsIn(page, text)
        if (found.length > 0) hits.value = [...hits.value, ...found].slice(0, MAX_HITS)
        if (hits.value.length >= MAX_HITS) break
      }
      progress.value = says.found(hits.value.length, hits.value.length >= MAX_HITS)
    }
    const timer = setTimeout(() => {
      look().catch((error) => {
        if (!signal.aborted) progress.value = sentenceOf(error)
      })
    }, 250)
    return () => {
      clearTimeout(timer)
      aborter.abort()
    }
  }, [wanted.value])
  return (
    <search
      ref={element}
      class="find"
      onKeyDown={(event) => {
        if (event.key === 'Escape' && !isOfComposing(event)) onClose()
      }}
    >
      <div class="form-row">
        <input
          ref={input}
          type="search"
          aria-label={says.label}
          placeholder={says.label}
          value={wanted.value}
          onInput={(event) => {
            wanted.value = event.currentTarget.value
          }}
        />
        <span class="quiet-text" role="status">
          {progress.value}
        </span>
        <button type="button" class="bare" aria-label={texts.shell.close} onClick={onClose}>
          <Icon name="close" />
        </button>
      </div>
      {hits.value.length > 0 && (
        <ul class="hits">
          {hits.value.map((hit) => (
            <li key={hit.seq}>
              <button type="button" class="hit" onClick={() => onGo(hit.seq)}>
                <span class="quiet-text">
                  #{hit.seq} <Time at={hit.ts} />
                </span>
                <bdi>
                  {visibleOutput(hit.before)}
                  <mark>{visibleOutput(hit.match)}</mark>
                  {visibleOutput(hit.after)}
                </bdi>
              </button>
            </li>
          ))}
        </ul>
      )}
    </search>
  )
}
