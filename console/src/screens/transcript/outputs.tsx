import { useSignal } from '@preact/signals'
import { runsOf } from '../../model/ansi.js'
import { bytes } from '../../model/format.js'
import { jsonText } from '../../model/json-text.js'
import { type Output, outputsOf } from '../../model/tool-summary.js'
import { cut, visible } from '../../model/visible.js'
import { More } from '../../parts/more.js'
import { Scrolling } from '../../parts/scrolling.js'
import { texts } from '../../texts.js'

const FIRST = 4_000
const STEP = 100_000

/** An image that came in the event itself. */
export const Image = ({ mime, data }: { mime: string; data: string }) => (
  <img class="output-image" src={`data:${mime};base64,${data}`} alt={texts.transcript.image} loading="lazy" />
)

/** A value as JSON, as far as it is asked for. */
export function Json({ value }: { value: unknown }) {
  const limit = useSignal(FIRST)
  const { text, isCut } = jsonText(value, limit.value)
  return (
    <>
      <Scrolling class="text code">{visible(text)}</Scrolling>
      {isCut && (
        <More
          onMore={() => {
            limit.value = limit.value + STEP
          }}
        >
          {texts.transcript.more}
        </More>
      )}
    </>
  )
}

/** What a terminal would show, without what it would do. */
function Terminal({ text }: { text: string }) {
  const shown = useSignal(FIRST)
  const rest = text.length - shown.value
  return (
    <>
      <Scrolling class="text code" dir="auto">
        {runsOf(rest > 0 ? cut(text, shown.value) : text).map(({ text: part, style }) =>
          style ? <span class={style}>{part}</span> : part,
        )}
      </Scrolling>
      {rest > 0 && (
        <More
          onMore={() => {
            shown.value = shown.value + STEP
          }}
        >
          {texts.shell.showMore(bytes(rest))}
        </More>
      )}
    </>
  )
}

function One({ output }: { output: Output }) {
  if (output.type === 'image') return <Image mime={output.mime} data={output.data} />
  return output.type === 'json' ? <Json value={output.value} /> : <Terminal text={output.text} />
}

/** As many blocks of a result are shown at first. */
const FIRST_BLOCKS = 20

export function Outputs({ result }: { result: unknown }) {
  const isWhole = useSignal(false)
  const outputs = outputsOf(result)
  return (
    <>
      {outputs.slice(0, isWhole.value ? undefined : FIRST_BLOCKS).map((output, index) => (
        <One key={index} output={output} />
      ))}
      {!isWhole.value && outputs.length > FIRST_BLOCKS && (
        <More
          onMore={() => {
            isWhole.value = true
          }}
        >
          {texts.shell.showMore(String(outputs.length - FIRST_BLOCKS))}
        </More>
      )}
    </>
  )
}
