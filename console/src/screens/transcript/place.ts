/** Safari is the one that does not. */
const BROWSER_KEEPS_IT = CSS.supports('overflow-anchor', 'auto')

/** Keeps what somebody reads where they see it when lines come above it, or go, in a browser that does not by itself. */
export class Place {
  #line: Element | undefined
  /** Where the line begins in all that scrolls, and how far that was scrolled. */
  #top = 0
  #scrolled = 0

  /** To be called whenever it was scrolled: what is seen first is to stay. */
  note(scroller: HTMLElement): void {
    if (BROWSER_KEEPS_IT) return
    this.#line = firstSeen(scroller)
    this.#scrolled = scroller.scrollTop
    if (this.#line) this.#top = topOf(this.#line, scroller)
  }

  /** To be called whenever lines have come, gone or grown. */
  keep(scroller: HTMLElement): void {
    if (!this.#line?.isConnected) return
    const moved = topOf(this.#line, scroller) - this.#top
    if (Math.abs(moved) < 1) return
    const { scrollTop } = scroller
    // what has become shorter than that is scrolled back at once
    scroller.scrollTop = (moved < 0 ? Math.max(this.#scrolled, scrollTop) : scrollTop) + moved
    this.note(scroller)
  }
}

const topOf = (line: Element, scroller: HTMLElement): number =>
  line.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop

/** The first line of which something is seen. */
function firstSeen(scroller: HTMLElement): Element | undefined {
  const lines = scroller.firstElementChild!.children
  const { top } = scroller.getBoundingClientRect()
  // before the first line it says how far the log reaches back: lines come below that
  let [from, to] = [1, lines.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (lines[middle]!.getBoundingClientRect().bottom > top) to = middle
    else from = middle + 1
  }
  return lines[from]
}
