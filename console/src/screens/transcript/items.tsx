import { useSignal } from '@preact/signals'
import type {
  MessageItem,
  MessagePart,
  StreamingMessage,
  StreamingPart,
  TranscriptItem,
} from '../../../../client/index.js'
import { loaded } from '../../loaded.js'
import { bytes, count, duration } from '../../model/format.js'
import { isSame } from '../../model/same.js'
import { imageOf } from '../../model/tool-summary.js'
import type { Helper } from '../../model/transcript-rows.js'
import { Icon } from '../../parts/icon.js'
import { Markdown } from '../../parts/markdown.js'
import { memo } from '../../parts/memo.js'
import { Failure } from '../../parts/notice.js'
import { Time } from '../../parts/time.js'
import { Line, Text } from '../../parts/untrusted.js'
import { hrefTo } from '../../route.js'
import { texts } from '../../texts.js'
import { Image, Json } from './outputs.js'
import type { TranscriptState } from './state.js'
import { ToolCard } from './tool-card.js'

const says = texts.transcript

interface RowProps {
  item: TranscriptItem
  nested: ReadonlyMap<string, Helper>
  state: TranscriptState
}

/** Whether anything under the item changed is seen by what hangs on it, too. */
export function Row({ item, nested, state }: RowProps) {
  const hasHelper = item.kind === 'message' && item.parts.some((part) => part.type === 'tool' && nested.has(part.id))
  // the others need not be drawn again when a helper's words come
  return <StillRow item={item} nested={hasHelper ? nested : NONE} state={state} />
}
const NONE: RowProps['nested'] = new Map()

const PlainRow = ({ item, nested, state }: RowProps) => (
  <article class={`line line-${item.kind === 'message' ? item.role : item.kind}`} data-seq={item.seq} tabIndex={-1}>
    <Content item={item} nested={nested} state={state} />
    <p class="line-meta">
      <a href={hrefTo('sessions', state.id, item.seq)} aria-label={says.linkTo(item.seq)}>
        #{item.seq}
      </a>
      <Time at={item.ts} />
    </p>
  </article>
)
// a window that moves is folded anew: its items are other objects that say the same
const StillRow = memo(PlainRow, isSame)

function Content({ item, nested, state }: RowProps) {
  switch (item.kind) {
    case 'message':
      return <Message item={item} nested={nested} state={state} />
    case 'turn':
      return (
        <div class="turn" data-bad={item.isError}>
          <p>
            {says.turnEnds[item.subtype] ?? item.subtype} · {duration(item.durationMs)} ·{' '}
            {says.tokens(
              count(item.usage.inputTokens + item.usage.cacheReadTokens + item.usage.cacheCreationTokens),
              count(item.usage.outputTokens),
            )}
          </p>
          {item.errors?.map((error) => (
            <Text text={error} class="bad" first={1000} />
          ))}
        </div>
      )
    case 'file':
      return <File sessionId={state.id} path={item.path} size={item.bytes} description={item.description} />
    case 'execution':
      return (
        <div class="card">
          <p class="card-plain">
            <Line text={item.toolName} class="tool-name" length={80} />
            <span class="quiet-text">
              {says.execution[item.status === 'running' && state.isGone.value ? 'abandoned' : item.status]}
            </span>
          </p>
          {item.error && <Text text={item.error} class="bad" first={1000} />}
          {item.output &&
            (item.output.type === 'text' ? (
              <Text text={item.output.value} class="code" />
            ) : (
              <Json value={item.output.value} />
            ))}
        </div>
      )
    case 'error':
      return (
        <div class="notice notice-bad">
          <Text text={item.message} first={2000} />
        </div>
      )
  }
}

function File({
  sessionId,
  path,
  size,
  description,
}: {
  sessionId: string
  path: string
  size: number
  description?: string | undefined
}) {
  const error = useSignal<unknown>(undefined)
  const fetchIt = async (): Promise<void> => {
    error.value = undefined
    try {
      const { saveFile } = await loaded(import('./save.js'))
      await saveFile(sessionId, path)
    } catch (failure) {
      error.value = failure
    }
  }
  return (
    <div class="card deliverable">
      <Icon name="download" />
      <div>
        <button type="button" class="as-link" onClick={() => void fetchIt()}>
          <Line text={path} length={160} />
        </button>
        <p class="quiet-text">
          {bytes(size)}
          {description && (
            <>
              {' · '}
              <Line text={description} length={300} />
            </>
          )}
        </p>
        {error.value !== undefined && <Failure error={error.value} />}
      </div>
    </div>
  )
}

const Message = ({ item, nested, state }: RowProps & { item: MessageItem }) => (
  <>
    <h2 class="unseen">{item.role === 'user' ? says.user : says.assistant}</h2>
    {(item.isReplay || item.isSynthetic) && <p class="quiet-text">{item.isReplay ? says.replay : says.synthetic}</p>}
    {item.parts.map((part, index) => (
      <Part key={index} part={part} role={item.role} nested={nested} state={state} ts={item.ts} />
    ))}
  </>
)

interface PartProps {
  part: MessagePart
  role: MessageItem['role']
  nested: RowProps['nested']
  state: TranscriptState
  ts: number
}

function Part({ part, role, nested, state, ts }: PartProps) {
  switch (part.type) {
    case 'text':
      // what a person wrote is shown as it was written
      return role === 'user' ? <Text text={part.text} class="said" first={6_000} /> : <Markdown text={part.text} />
    case 'thinking':
      return <Thinking text={part.text} />
    case 'tool':
      return <ToolCard tool={part} inner={nested.get(part.id)} nested={nested} state={state} ts={ts} />
    case 'other': {
      const image = imageOf(part.block)
      return image ? <Image {...image} /> : <Json value={part.block} />
    }
  }
}

const Thinking = ({ text, isOpen = false }: { text: string; isOpen?: boolean }) => (
  <details class="thinking" open={isOpen}>
    <summary>
      {says.thinking} {!isOpen && <Line text={text} class="thinking-line" length={110} />}
    </summary>
    <Text text={text} />
  </details>
)

/** What is being written now, below what is written. */
export const Streaming = ({ messages }: { messages: readonly StreamingMessage[] }) => (
  <>
    {messages.map((message) => (
      <div key={message.uuid} class="line line-assistant streaming" data-nested={message.parentToolUseId !== undefined}>
        {message.parts.map((part) => (
          <StreamingContent key={part.blockIndex} part={part} />
        ))}
      </div>
    ))}
  </>
)

/** As much of the end of a long text is shown while it grows. */
const MAX_STREAMED = 20_000

function StreamingContent({ part }: { part: StreamingPart }) {
  if (part.type === 'tool_input')
    return (
      <div class="card">
        <Text text={part.json.slice(-2_000)} class="code" />
      </div>
    )
  if (part.type === 'thinking') return <Thinking text={part.text.slice(-MAX_STREAMED)} isOpen />
  return part.text.length > MAX_STREAMED ? (
    <Text text={part.text.slice(-MAX_STREAMED)} first={MAX_STREAMED} />
  ) : (
    <Markdown text={part.text} />
  )
}
