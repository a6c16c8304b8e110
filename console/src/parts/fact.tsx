import type { ComponentChildren } from 'preact'

/** A name and what it is, in a list of such (`fact-list`). */
export const Fact = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)
