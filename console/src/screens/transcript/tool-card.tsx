import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import type { ToolPart, TranscriptItem } from '../../../../client/index.js'
import { editsOf } from '../../model/edits.js'
import { duration } from '../../model/format.js'
import { summaryOf } from '../../model/tool-summary.js'
import { Diff } from '../../parts/diff.js'
import { Icon } from '../../parts/icon.js'
import { Line } from '../../parts/untrusted.js'
import { now } from '../../state/clock.js'
import { texts } from '../../texts.js'
import { Row } from './items.js'
import { Json, Outputs, Terminal } from './outputs.js'
import type { TranscriptState } from './state.js'

const says = texts.transcript

interface ToolCardProps {
  tool: ToolPart
  /** What a helper said and did for this call. */
  inner: TranscriptItem[] | undefined
  nested: ReadonlyMap<string, TranscriptItem[]>
  state: TranscriptState
  /** When it was called. */
  ts: number
}

const Taken = ({ tool, ts }: { tool: ToolPart; ts: number }) => {
  if (tool.endedAt !== undefined) return <span>{duration(Math.max(0, tool.endedAt - ts))}</span>
  return tool.status === 'running' ? (
    <span>{duration(Math.max(0, Math.floor((now.value - ts) / 1000) * 1000))}</span>
  ) : null
}

/** A call of a tool: what it is about, how it stands, and on demand what went in and came out. Edits are shown at once. */
export function ToolCard({ tool, inner, nested, state, ts }: ToolCardProps) {
  const edits = useMemo(() => editsOf(tool.input, tool.result), [tool.input, tool.result])
  const isOpen = useSignal(false)
  const command = (tool.input as { command?: unknown } | undefined)?.command
  return (
    <div class="card tool" data-status={tool.status}>
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
        <Line text={summaryOf(tool.input)} class="tool-summary" length={160} />
        <span class="tool-state">
          <Taken tool={tool} ts={ts} /> <b>{says.tool[tool.status]}</b>
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
          {typeof command === 'string' ? <Terminal text={command} /> : <Json value={tool.input} />}
          <h3>{says.output}</h3>
          {tool.result === undefined ? <p class="quiet-text">{says.noOutput}</p> : <Outputs result={tool.result} />}
        </div>
      )}
      {inner && (
        <details class="helper" open={tool.status === 'running'}>
          <summary>{says.helper(inner.length)}</summary>
          {inner.map((item) => (
            <Row key={`${item.kind}${item.seq}`} item={item} nested={nested} state={state} />
          ))}
        </details>
      )}
    </div>
  )
}
