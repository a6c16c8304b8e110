import type * as gateway from '../src/index.js'

export function apiDocuments(
  of: Pick<typeof gateway, 'gatewayPlugin' | 'createMemoryProfileStore'>,
): Promise<Record<'openapi.json' | 'asyncapi.json', string>>
