import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { ToolPart } from '../../../../client/index.js'
import { editsOf } from '../../model/edits.js'
import { duration } from '../../model/format.js'
import { ranWith, summaryOf } from '../../model/tool-summary.js'
import type { Helper } from '../../model/transcript-rows.js'
import { Diff } from '../../parts/diff.js'
import { Icon } from '../../parts/icon.js'
import { Line, Text } from '../../parts/untrusted.js'
import { now } from '../../state/clock.js'
import { texts } from '../../texts.js'
import { Row, Streaming } from './items.js'
import { Json, Outputs } from './outputs.js'
import type { TranscriptState } from './state.js'

const says = texts.transcript

interface ToolCardProps {
  tool: ToolPart
  /** What a helper said and did for this call. */
  inner: Helper | undefined
  nested: ReadonlyMap<string, Helper>
  state: TranscriptState
  /** When it was called. */
  ts: number
}

const Taken = ({ tool, status, ts }: Pick<ToolCardProps, 'tool' | 'ts'> & Pick<ToolPart, 'status'>) => {
  if (tool.endedAt !== undefined) return <span>{duration(Math.max(0, tool.endedAt - ts))}</span>
  return status === 'running' ? <span>{duration(Math.max(0, Math.floor((now.value - ts) / 1000) * 1000))}</span> : null
}

const Input = ({ input }: { input: unknown }) => {
  const command = (input as { command?: unknown } | undefined)?.command
  if (typeof command !== 'string') return <Json value={input} />
  const { command: _, ...others } = input as object & { command: string }
  return (
    <>
      <Text text={command} class="code" dir="ltr" />
      {Object.keys(others).length > 0 && <Json value={others} />}
    </>
  )
}

/** A call of a tool: what it is about, how it stands, and on demand what went in and came out. Edits are shown at once. */
export function ToolCard({ tool, inner, nested, state, ts }: ToolCardProps) {
  const ran = ranWith(tool)
  const edits = useMemo(() => editsOf(ran, tool.result), [ran, tool.result])
  const isOpen = useSignal(false)
  const isOpenCall = tool.status === 'running' || tool.status === 'awaiting_approval'
  // of the end of a session that was removed while the line was down no event tells
  const status = isOpenCall && state.isGone.value ? 'abandoned' : tool.status
  return (
    <div class="card tool" data-status={status}>
      <button
        type="button"
        class="card-head"
        aria-expanded={isOpen.value}
        onClick={() => {
          isOpen.value = !isOpen.value
        }}
      >
        <Icon name="chevron" />
        <Line text={tool.name} class="tool-name" length={60} />
        <Line text={summaryOf(ran)} class="tool-summary" length={160} />
        <span class="tool-state">
          <Taken tool={tool} status={status} ts={ts} /> <b>{says.tool[status]}</b>
        </span>
      </button>
      {tool.permission?.message && (
        <p class="quiet-text tool-note">
          <Line text={tool.permission.message} length={400} />
        </p>
      )}
      {edits.map((edit, index) => (
        <Diff key={index} edit={edit} />
      ))}
      {isOpen.value && (
        <div class="card-body">
          <h3>{says.input}</h3>
          <Input input={ran} />
          {ran !== tool.input && (
            <>
              <h3>{says.askedFor}</h3>
              <Input input={tool.input} />
            </>
          )}
          <h3>{says.output}</h3>
          {tool.result === undefined ? <p class="quiet-text">{says.noOutput}</p> : <Outputs result={tool.result} />}
        </div>
      )}
      {inner && (
        <details class="helper" open={status === 'running'}>
          <summary>{says.helper(inner.items.length + inner.streaming.length)}</summary>
          {inner.items.map((item) => (
            <Row key={`${item.kind}${item.seq}`} item={item} nested={nested} state={state} />
          ))}
          <Streaming messages={inner.streaming} />
        </details>
      )}
    </div>
  )
}
