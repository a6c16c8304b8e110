import type { ProviderRef } from '../../../schemas/profiles.js'
import type { FieldError } from '../../errors.js'
import { unknownName } from '../../lib/unknown-name.js'
import { PROVIDER_IDS } from './peers.js'

/** Why this engine can run no session on that provider, as far as that is known without looking at the environment or asking anybody. */
export function providerProblem(provider: ProviderRef | undefined): FieldError | undefined {
  if (!provider) return { path: 'provider', message: 'missing; expected { "id": … }, which says whose models.' }
  const { id, baseUrl } = provider
  if (!PROVIDER_IDS.includes(id)) {
    const message = `${unknownName('provider', id, PROVIDER_IDS)}; known are ${PROVIDER_IDS.join(', ')}.`
    return { path: 'provider.id', message }
  }
  if (id === 'openai-compatible' && baseUrl === undefined)
    return { path: 'provider.baseUrl', message: 'missing; the provider openai-compatible is wherever that says.' }
  return undefined
}
