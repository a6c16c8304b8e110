import { useState } from 'preact/hooks'
import { bytes } from '../model/format.js'
import { cut, visible, visibleLine } from '../model/visible.js'
import { texts } from '../texts.js'
import { More } from './more.js'
import { Scrolling } from './scrolling.js'

/** One line of text that an agent or a user wrote: a title, a name, a path. The whole of it on hover. */
export const Line = ({
  text,
  class: name,
  length = 200,
  dir = 'auto',
}: {
  text: string
  class?: string | undefined
  length?: number
  /** `ltr` for code: else what it begins with says. */
  dir?: 'ltr' | 'auto'
}) => (
  <bdi class={name} dir={dir} title={text.length > 40 ? visibleLine(text, 1000) : undefined}>
    {visibleLine(text, length) || (text && texts.shell.blank)}
  </bdi>
)

/** As much of a long text as is shown at first, and more of it with each press. */
const FIRST = 4_000
const STEP = 100_000

/** Text that an agent or a user wrote, as it is: cut, with "show more". */
export function Text({
  text,
  first = FIRST,
  class: name,
  dir = 'auto',
}: {
  text: string
  first?: number
  class?: string | undefined
  dir?: 'ltr' | 'auto'
}) {
  const [shown, setShown] = useState(first)
  const rest = text.length - shown
  return (
    <>
      <Scrolling class={`text ${name ?? ''}`} dir={dir}>
        {visible(rest > 0 ? cut(text, shown) : text)}
      </Scrolling>
      {rest > 0 && <More onMore={() => setShown(shown + STEP)}>{texts.shell.showMore(bytes(rest))}</More>}
    </>
  )
}
