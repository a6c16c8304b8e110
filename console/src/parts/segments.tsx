import type { ComponentChildren } from 'preact'
import { useId, useReducer } from 'preact/hooks'
import '../styles/segments.css'

/** One of a few, all of them in sight: radio buttons that look like one control. */
export function Segments<T extends string | number>({
  legend,
  options,
  value,
  onChange,
}: {
  legend: string
  options: readonly (readonly [value: T, label: ComponentChildren])[]
  value: T
  onChange: (value: T) => void
}) {
  const name = useId()
  // the browser has checked what was pressed: a choice that is not taken is drawn back
  const [, draw] = useReducer<number, void>((times) => times + 1, 0)
  return (
    <fieldset class="segments">
      <legend class="unseen">{legend}</legend>
      {options.map(([one, label]) => (
        <label key={one}>
          <input
            type="radio"
            name={name}
            checked={one === value}
            onChange={() => {
              onChange(one)
              draw()
            }}
          />
          <span>{label}</span>
        </label>
      ))}
    </fieldset>
  )
}
