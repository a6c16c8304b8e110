import { useSignal } from '@preact/signals'
import { DAYS, daysBetween, lastDays } from '../../model/usage.js'
import { Dialog } from '../../parts/dialog.js'
import { Field, toRefused } from '../../parts/field.js'
import { texts } from '../../texts.js'

const says = texts.usage
const MAX_DAYS = 400

interface Range {
  from: string
  to: string
}

/** The last so many days, or any from one to another. */
export function RangeChooser({
  from,
  to,
  today,
  onChange,
}: Range & {
  today: string
  /** What the address is to say. */
  onChange: (query: { days: string } | { from: string; to: string }) => void
}) {
  const isOpen = useSignal(false)
  const known = DAYS.find((days) => {
    const range = lastDays(days, Date.parse(today))
    return range.from === from && range.to === to
  })
  return (
    <>
      <select
        aria-label={says.range}
        class="range"
        value={known ?? 'custom'}
        onChange={(event) => {
          const { value } = event.currentTarget
          if (value === 'custom') isOpen.value = true
          else onChange({ days: value })
        }}
      >
        {DAYS.map((days) => (
          <option key={days} value={days}>
            {says.ranges[days]}
          </option>
        ))}
        <option value="custom">{known === undefined ? `${from} … ${to}` : says.custom}</option>
      </select>
      {known === undefined && (
        <button type="button" class="quiet" onClick={() => (isOpen.value = true)}>
          {says.custom}
        </button>
      )}
      {isOpen.value && (
        <CustomRange
          {...{ from, to }}
          onClose={() => {
            isOpen.value = false
          }}
          onChoose={onChange}
        />
      )}
    </>
  )
}

function CustomRange({
  from,
  to,
  onClose,
  onChoose,
}: Range & { onClose: () => void; onChoose: (range: { from: string; to: string }) => void }) {
  const range = useSignal<Range>({ from, to })
  const isBad = useSignal(false)
  return (
    <Dialog title={says.range} onClose={onClose}>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault()
          const days = daysBetween(range.value.from, range.value.to).length
          isBad.value = days === 0 || days > MAX_DAYS
          if (isBad.value) return toRefused()
          onClose()
          onChoose({ ...range.value })
        }}
      >
        <div class="pair-of-days">
          {(['from', 'to'] as const).map((end) => (
            <Field key={end} label={says[end]} error={isBad.value && end === 'to' ? says.badRange : undefined}>
              {(given) => (
                <input
                  {...given}
                  type="date"
                  required
                  value={range.value[end]}
                  onInput={(event) => {
                    range.value = { ...range.value, [end]: event.currentTarget.value }
                  }}
                />
              )}
            </Field>
          ))}
        </div>
        <div class="form-end">
          <button type="submit" class="primary">
            {says.show}
          </button>
        </div>
      </form>
    </Dialog>
  )
}
