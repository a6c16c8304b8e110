import type { ComponentChildren } from 'preact'
import { Icon } from './icon.js'

/** To the list that this is one of. */
export const Back = ({ href, label }: { href: string; label: string }) => (
  <a class="button bare back" href={href} aria-label={label} title={label}>
    <Icon name="back" />
  </a>
)

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
        <h1 tabIndex={-1}>{title}</h1>
      </div>
      {actions && <div class="page-actions">{actions}</div>}
    </header>
    {children}
  </section>
)
