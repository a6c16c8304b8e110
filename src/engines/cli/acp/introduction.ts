import type { ClientContext, InitializeResponse } from '@agentclientprotocol/sdk'
import { startError } from '../../../errors.js'
import { isUnknownMethod, reasonOf } from './connection.js'

/** Of the protocol. */
const VERSION = 1

/** @throws GatewayError when it is no agent that can be spoken with */
export async function introduce(agent: ClientContext): Promise<InitializeResponse> {
  const hello = await agent
    .request('initialize', {
      protocolVersion: VERSION,
      clientCapabilities: {},
      clientInfo: { name: 'session-gateway', version: '1' },
    })
    .catch((error) => {
      const what = isUnknownMethod(error) ? 'does not speak the Agent Client Protocol' : 'could not begin'
      throw startError(`The agent ${what}: ${reasonOf(error)}`, error)
    })
  assertSpoken(hello)
  return hello
}

/** @throws GatewayError when what the agent said of itself is not of a version of the protocol that is spoken here */
function assertSpoken(hello: Partial<InitializeResponse> | null): void {
  if (typeof hello !== 'object' || hello === null)
    throw startError(`The agent does not speak the Agent Client Protocol: its answer to initialize is ${hello}.`)
  const { protocolVersion } = hello
  if (typeof protocolVersion === 'number' && protocolVersion !== VERSION)
    throw startError(
      `The agent speaks version ${protocolVersion} of the Agent Client Protocol; the gateway speaks version ${VERSION}.`,
    )
}
