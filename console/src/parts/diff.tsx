import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { type DiffRow, diffOf, type Edit, splitRows } from '../model/edits.js'
import { visible } from '../model/visible.js'
import { texts } from '../texts.js'
import { memo } from './memo.js'
import { More } from './more.js'
import { Line } from './untrusted.js'

const says = texts.transcript.diff
const FIRST_ROWS = 60
/** Of a line; the rest of it is left out. */
const MAX_LINE = 2_000

const Cell = ({ row, side }: { row: DiffRow | undefined; side?: 'old' | 'new' }) => {
  const number = row && (side === 'old' ? row.old : side === 'new' ? row.new : (row.new ?? row.old))
  return (
    <>
      <span class="diff-number" aria-hidden="true">
        {number}
      </span>
      <span class={`diff-text diff-${row?.kind ?? 'none'}`}>
        {row?.kind === 'add' && <span class="diff-sign">+</span>}
        {row?.kind === 'remove' && <span class="diff-sign">−</span>}
        <bdi>{row ? visible(row.text.slice(0, MAX_LINE)) || ' ' : ' '}</bdi>
      </span>
    </>
  )
}

/** One file's change, unified or side by side. */
export const Diff = memo(({ edit }: { edit: Edit }) => {
  const diff = useMemo(() => diffOf(edit), [edit])
  const isSplit = useSignal(false)
  const shown = useSignal(FIRST_ROWS)
  const rows = diff.rows
  const split = isSplit.value ? splitRows(rows) : undefined
  const length = split?.length ?? rows.length
  return (
    <figure class="diff">
      <figcaption>
        <Line text={diff.path} class="path" length={160} />
        <span class="diff-counts">
          <span class="added">+{diff.added}</span> <span class="removed">−{diff.removed}</span>
        </span>
        <button
          type="button"
          class="as-link"
          aria-pressed={isSplit.value}
          onClick={() => {
            isSplit.value = !isSplit.value
          }}
        >
          {isSplit.value ? says.unified : says.split}
        </button>
      </figcaption>
      <div class={`diff-rows ${split ? 'diff-split' : ''}`}>
        {split
          ? split.slice(0, shown.value).map(([left, right]) => (
              <div class="diff-row">
                <Cell row={left} side="old" />
                <Cell row={right} side="new" />
              </div>
            ))
          : rows.slice(0, shown.value).map((row) => (
              <div class="diff-row">
                <Cell row={row} />
              </div>
            ))}
      </div>
      {length > shown.value && (
        <More
          onMore={() => {
            shown.value = shown.value + 1000
          }}
        >
          {texts.shell.showMore(says.lines(length - shown.value))}
        </More>
      )}
      {diff.isCut && <p class="quiet-text">{says.cut}</p>}
    </figure>
  )
})
