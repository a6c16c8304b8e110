import type { ClientContext, InitializeResponse } from '@agentclientprotocol/sdk'
import { Type } from '@sinclair/typebox'
import { startError } from '../../../errors.js'
import { isRecord } from '../../../lib/json-value.js'
import { readAs } from '../read-as.js'
import { isUnknownMethod, reasonOf } from './connection.js'

/** Of the protocol. */
const VERSION = 1

/** Of an answer that is none. */
const MAX_QUOTED = 200

/** What is told to people of what an agent says of itself. */
const Told = Type.Object({
  agentInfo: Type.Optional(Type.Object({ version: Type.Optional(Type.String()) })),
  authMethods: Type.Optional(Type.Array(Type.Object({ id: Type.String() }))),
})

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
  return readAs(Told, hello) as InitializeResponse
}

/** @throws GatewayError when what the agent said of itself is not of a version of the protocol that is spoken here */
function assertSpoken(hello: unknown): void {
  if (!isRecord(hello)) {
    const said = JSON.stringify(hello).slice(0, MAX_QUOTED)
    throw startError(`The agent does not speak the Agent Client Protocol: its answer to initialize is ${said}.`)
  }
  const { protocolVersion } = hello
  if (typeof protocolVersion === 'number' && protocolVersion !== VERSION)
    throw startError(
      `The agent speaks version ${protocolVersion} of the Agent Client Protocol; the gateway speaks version ${VERSION}.`,
    )
}
