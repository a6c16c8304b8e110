/** Safari is the one that does not. */
const BROWSER_KEEPS_IT = CSS.supports('overflow-anchor', 'auto')

/** Keeps what somebody reads where they see it when lines come above it, or go, in a browser that does not by itself. */
export class Place {
  readonly #listIn: (scroller: HTMLElement) => Element | null
  readonly #from: number
  #line: Element | undefined
  /** Where the line begins in all that scrolls, and how far that was scrolled. */
  #top = 0
  #scrolled = 0

  /** @param listIn what holds the lines · @param from which of what it holds is the first line */
  constructor(listIn: (scroller: HTMLElement) => Element | null, from = 0) {
    this.#listIn = listIn
    this.#from = from
  }

  /** To be called whenever it was scrolled: what is seen first is to stay. */
  note(scroller: HTMLElement): void {
    if (BROWSER_KEEPS_IT) return
    this.#line = this.#firstSeen(scroller)
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

  /** The first line of which something is seen; none where what stands before the list is seen, too: whoever is there sees what comes. */
  #firstSeen(scroller: HTMLElement): Element | undefined {
    const lines = this.#listIn(scroller)?.children
    if (!lines) return undefined
    const { top } = scroller.getBoundingClientRect()
    let [from, to] = [this.#from, lines.length]
    while (from < to) {
      const middle = (from + to) >> 1
      if (lines[middle]!.getBoundingClientRect().bottom > top) to = middle
      else from = middle + 1
    }
    const line = lines[from]
    return from === 0 && line && line.getBoundingClientRect().top >= top ? undefined : line
  }
}

const topOf = (line: Element, scroller: HTMLElement): number =>
  line.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop
