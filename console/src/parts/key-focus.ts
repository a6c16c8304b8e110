/** Whether the focus is where somebody sees it, who uses keys: what takes its place is to have it then. */
export const hasKeyFocus = (): boolean => document.activeElement?.matches(':focus-visible') ?? false
