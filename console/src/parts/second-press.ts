/** As long as what has come into the place of something else takes no press of the pointer: `.unhurried`. */
const SETTLES_MS = 500

/** The key that was pressed last, while nothing else is used. */
let pressed: string | undefined
/** Where the page has moved the focus since, and what runs for as long as that is new. */
let led: { to: Element; news: Animation } | undefined
/** What a series of clicks began on. */
let begun: Element | undefined

/** Moves the focus. What a key has led to takes no second press of it that was meant for what had the focus before. */
export function lead(to: HTMLElement | null | undefined, options?: FocusOptions): void {
  if (!to) return
  if (to !== document.activeElement) led = { to, news: to.animate(null, SETTLES_MS) }
  to.focus(options)
}

const drop = (event: Event): void => {
  event.preventDefault()
  event.stopPropagation()
}

addEventListener(
  'keydown',
  (event) => {
    const { key, target, repeat } = event
    const isAgain = led !== undefined && target === led.to && key === pressed && (key === 'Enter' || key === 'Escape')
    if (isAgain && (repeat || led!.news.playState === 'running')) return drop(event)
    if (repeat) return
    pressed = key
    led = undefined
  },
  { capture: true },
)
for (const use of ['pointerdown', 'input'])
  addEventListener(
    use,
    () => {
      pressed = undefined
      led = undefined
    },
    { capture: true },
  )

/** A press on a label comes to what is in it, too. */
const controlAt = (target: EventTarget | null): Element | undefined =>
  target instanceof Element
    ? (target.closest('label') ?? target.closest('a, button, summary, input, select, textarea') ?? target)
    : undefined

addEventListener(
  'mousedown',
  ({ detail, target }) => {
    if (detail <= 1) begun = controlAt(target)
  },
  { capture: true },
)
addEventListener(
  'click',
  (event) => {
    // the second press of two was meant for what the first has taken away
    if (event.detail > 1 && controlAt(event.target) !== begun) drop(event)
  },
  { capture: true },
)
