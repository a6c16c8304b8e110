import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { hasGoneOn } from '../route.js'
import { Icon } from './icon.js'
import { lead } from './second-press.js'

/** To the list that this is one of. */
export const Back = ({ href, label }: { href: string; label: string }) => (
  <a class="button bare back" href={href} aria-label={label} title={label}>
    <Icon name="back" />
  </a>
)

/** Of a screen. Whoever has come by a link that went with the screen before goes on here, and hears where they are. */
export function Heading({ children }: { children: ComponentChildren }) {
  const element = useRef<HTMLHeadingElement>(null)
  useLayoutEffect(() => {
    if (hasGoneOn() && document.activeElement === document.body) lead(element.current, { preventScroll: true })
  }, [])
  return (
    <h1 ref={element} tabIndex={-1}>
      {children}
    </h1>
  )
}

interface PageProps {
  title: string
  /** To where this is one of many. */
  back?: { href: string; label: string }
  /** Beside the title: what can be done here. */
  actions?: ComponentChildren
  /** Fills the height and scrolls inside, as lists and transcripts do. */
  fills?: boolean
  children: ComponentChildren
}

/** The frame of a screen: its heading, what can be done, and its content. */
export const Page = ({ title, back, actions, fills, children }: PageProps) => (
  <section class={`page${fills ? ' page-fills' : ''}`}>
    <header class="page-head">
      <div class="page-title">
        {back && <Back {...back} />}
        <Heading>{title}</Heading>
      </div>
      {actions && <div class="page-actions">{actions}</div>}
    </header>
    {children}
  </section>
)
