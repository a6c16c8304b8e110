export interface ReferenceSources {
  /** What `gateway.json` is checked with. */
  schema: object
  openapi: object
  asyncapi: object
  errors: { code: string; status: number; detail: string }[]
}

export function references(of: ReferenceSources): Record<'configuration.md' | 'http-api.md', string>
