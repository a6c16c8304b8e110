import type { ComponentChildren } from 'preact'
import '../styles/scrolls.css'

/** What may be wider than the screen: it scrolls by itself, by keyboard too. */
export const Scrolls = ({ label, children }: { label: string; children: ComponentChildren }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: not every browser lets what scrolls be reached by keyboard
  <section class="scrolls" aria-label={label} tabIndex={0}>
    {children}
  </section>
)
