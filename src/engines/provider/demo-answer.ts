/** One answer of the demonstration model. */
export interface DemoAnswer {
  thinking?: string
  text?: string
  tools?: { tool: string; input: Record<string, unknown> }[]
  /** Says nothing more until it is aborted. */
  hang?: boolean
  /** Ends the answer as an upstream failure with this message. */
  fail?: string
}
