/** The daemon could not start although its configuration is in order: the port is taken, a storage is locked. */
export class StartError extends Error {
  override readonly name = 'StartError'
}
