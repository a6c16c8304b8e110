import { GatewayError } from '../../errors.js'

/**
 * Has the agent do what a caller asked for.
 * @param reasonOf what to tell of its refusal
 * @throws GatewayError SG_ERR_ENGINE_REFUSED, or what the command itself refused with
 */
export async function control(command: () => Promise<void>, reasonOf: (error: unknown) => string): Promise<void> {
  try {
    await command()
  } catch (error) {
    if (error instanceof GatewayError) throw error
    throw new GatewayError('SG_ERR_ENGINE_REFUSED', { detail: reasonOf(error), cause: error })
  }
}
