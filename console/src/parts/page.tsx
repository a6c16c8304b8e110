import type { ComponentChildren } from 'preact'

interface PageProps {
  title: string
  /** Beside the title: what can be done here. */
  actions?: ComponentChildren
  /** Fills the height and scrolls inside, as lists and transcripts do. */
  fills?: boolean
  children: ComponentChildren
}

/** The frame of a screen: its heading, what can be done, and its content. */
export const Page = ({ title, actions, fills, children }: PageProps) => (
  <section class={`page${fills ? ' page-fills' : ''}`}>
    <header class="page-head">
      <h1 tabIndex={-1}>{title}</h1>
      {actions && <div class="page-actions">{actions}</div>}
    </header>
    {children}
  </section>
)
