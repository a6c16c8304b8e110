/** Whether the focus is where somebody sees it, who uses keys: what takes its place is to have it then. */
export const hasKeyFocus = (): boolean => document.activeElement?.matches(':focus-visible') ?? false

/** Moves the focus once what is to have it was drawn. That may take: whoever has begun to write by then is not led away. */
export const focusDrawn = (move: () => void): void =>
  void requestAnimationFrame(() => {
    if (!document.activeElement?.closest('textarea, dialog')) move()
  })
