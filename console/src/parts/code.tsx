import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import { visible } from '../model/visible.js'
import { Scrolling } from './scrolling.js'
import { Text } from './untrusted.js'

const MAX_CHARS = 15_000

/** A piece of code; coloured once its grammar has come, where there is one. */
export function Code({ text, language }: { text: string; language: string | undefined }) {
  const coloured = useSignal<ComponentChildren>(undefined)
  const name = /^[\w+#-]{1,20}/.exec(language ?? '')?.[0]?.toLowerCase()
  useEffect(() => {
    coloured.value = undefined
    if (!name || text.length > MAX_CHARS) return
    let isWanted = true
    import('./highlight.js')
      .then(({ highlighted }) => highlighted(visible(text), name))
      .then(
        (nodes) => {
          if (isWanted && nodes) coloured.value = nodes
        },
        () => {},
      )
    return () => {
      isWanted = false
    }
  }, [text, name])
  if (coloured.value === undefined) return <Text text={text} class="code" />
  return (
    <Scrolling class="text code" dir="ltr">
      <code>{coloured.value}</code>
    </Scrolling>
  )
}
