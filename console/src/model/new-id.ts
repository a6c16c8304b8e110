/** An id that nobody else makes. Not `randomUUID`, which pages over plain http do not have. */
export const newId = (): string =>
  [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join('')
