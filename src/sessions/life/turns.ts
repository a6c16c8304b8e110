/** A message that waits for the turns before it to end. */
export interface QueuedMessage {
  text: string
  commandId?: string
  /** Name of who sent it; absent: of who created the session. */
  askedBy?: string
}
