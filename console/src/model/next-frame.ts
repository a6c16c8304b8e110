/** A page that nobody looks at has no frames: it goes on so often. */
const UNSEEN_MS = 500

/** Before the next frame is drawn, for what is drawn once however often it changes. */
export const nextFrame = (): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      cancelAnimationFrame(frame)
      resolve()
    }
    const timer = setTimeout(done, UNSEEN_MS)
    const frame = requestAnimationFrame(done)
  })
