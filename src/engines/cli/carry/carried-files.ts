/** A piece of a file of a session. */
export interface CarriedPiece {
  /** Of the file, below the agent's config directory, with `/` between folders. */
  path: string
  /** Of its first byte in the file. */
  offset: number
  /** Bytes. */
  length: number
  /** Of the bytes, by which the same are known. */
  digest: string
}

/**
 * Where nodes that have no config directory in common keep for each other what command-line agents write down of a session. Every method
 * rejects with a `StorageError` when nothing of what it was to do was done.
 */
export interface CarriedFiles {
  /** What is kept of a session's files: by path, each without a gap from its first byte. */
  pieces(sessionId: string): Promise<CarriedPiece[]>
  /** The bytes of a piece; undefined: it is not there any more. */
  read(sessionId: string, path: string, offset: number): Promise<Buffer | undefined>
  /** Keeps a piece until the session is removed; whatever is kept of that file from there on goes. Of a session that is not there: nothing. */
  write(sessionId: string, piece: CarriedPiece, bytes: Buffer): Promise<void>
}
