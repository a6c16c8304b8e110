/** For so long after a key or a press somebody counts as being there. */
const STAYS_MS = 60_000

let lastAt = Date.now()
for (const type of ['pointerdown', 'keydown', 'wheel'])
  addEventListener(
    type,
    () => {
      lastAt = Date.now()
    },
    { capture: true, passive: true },
  )

/** Said with what the page asks by itself: a sign-in does not last the longer for it. */
export const attendance = (): Record<string, string> => (Date.now() - lastAt < STAYS_MS ? {} : { 'x-unattended': '1' })
