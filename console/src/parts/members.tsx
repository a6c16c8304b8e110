import { useMemo } from 'preact/hooks'
import { jsonText } from '../model/json-text.js'
import { directionOf } from '../model/tool-summary.js'
import '../styles/members.css'
import { Line, Text } from './untrusted.js'

/** With more members than that it is shown as JSON. */
const MAX_MEMBERS = 24
const ONE_LINE = 90
/** As much of what is no text is made JSON of. */
const MAX_JSON = 1_000_000

/** An object that an agent or a user made: each member with its name, texts as they are, everything else as JSON. */
export function Members({ value }: { value: Record<string, unknown> }) {
  const members = useMemo(() => {
    const names = Object.keys(value)
    if (names.length > MAX_MEMBERS) return undefined
    return names.map(
      (name) => [name, typeof value[name] === 'string' ? value[name] : jsonText(value[name], MAX_JSON).text] as const,
    )
  }, [value])
  if (!members) return <Whole value={value} />
  return (
    <dl class="members">
      {members.map(([name, text]) => (
        <div key={name}>
          <dt>
            <Line text={name} length={60} />
          </dt>
          <dd>
            {text.length <= ONE_LINE && !text.includes('\n') ? (
              <Line text={text} class="mono" dir={directionOf(name, value[name])} />
            ) : (
              <Text text={text} first={2_000} dir={directionOf(name, value[name])} />
            )}
          </dd>
        </div>
      ))}
    </dl>
  )
}

function Whole({ value }: { value: Record<string, unknown> }) {
  const text = useMemo(() => jsonText(value, MAX_JSON).text, [value])
  return <Text text={text} dir="ltr" />
}
