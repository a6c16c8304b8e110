import type { Socket } from 'node:net'

// What is used of `pg`, in our own words: its types are a package of its own, which nobody who compiles against ours has.

/** A connection as the driver gives it to what writes on it by itself. */
export interface Wire {
  readonly stream: Socket
  parse(query: { name: string; text: string; types: [] }, more: true): void
  bind(config: { statement: string; values: unknown[] }, more: true): void
  describe(message: { type: 'P'; name: string }, more: true): void
  execute(config: { portal: string; rows: string }, more: true): void
  sync(): void
  on(event: 'readyForQuery' | 'end', listener: () => void): unknown
  off(event: 'readyForQuery' | 'end', listener: () => void): unknown
}

export interface Client {
  connect(): Promise<unknown>
  // biome-ignore lint/suspicious/noExplicitAny: as the driver types them
  query(sql: string, values?: unknown[]): Promise<{ rows: any[]; rowCount: number | null }>
  query(pipeline: { submit(connection: Wire): void }): unknown
  on(event: 'notification', listener: (message: { payload?: string | undefined }) => void): unknown
  on(event: 'error', listener: (error: Error) => void): unknown
  once(event: 'end', listener: () => void): unknown
  end(): Promise<void>
}
