import { type SessionCommand, SessionCommands } from '../../../schemas/commands.js'
import { GatewayError, invalidField } from '../../errors.js'
import { isRecord } from '../../lib/json-value.js'
import { type Checker, compileSchema, validationError } from '../../lib/validation.js'

const CHECKERS: ReadonlyMap<string, Checker<SessionCommand>> = new Map(
  Object.entries(SessionCommands).map(([type, schema]) => [type, compileSchema(schema) as Checker<SessionCommand>]),
)

/**
 * Makes a command of a parsed frame.
 * @throws SG_ERR_UNKNOWN_COMMAND, SG_ERR_VALIDATION naming the field
 */
export function parseCommand(frame: unknown): SessionCommand {
  if (!isRecord(frame))
    throw new GatewayError('SG_ERR_VALIDATION', { detail: 'A command is a JSON object with a type.' })
  const { type } = frame
  if (typeof type !== 'string') throw invalidField('type', 'Expected string.')
  const checker: Checker<SessionCommand> | undefined = CHECKERS.get(type)
  if (!checker)
    throw new GatewayError('SG_ERR_UNKNOWN_COMMAND', {
      errors: [{ path: 'type', message: `Expected one of ${[...CHECKERS.keys()].join(', ')}.` }],
    })
  if (!checker.check(frame)) throw validationError(checker.errors(frame))
  return frame
}

/** The client's own id of a frame, if it can be read: an error answer carries it. */
export function commandIdOf(frame: unknown): string | undefined {
  const id = typeof frame === 'object' && frame !== null ? (frame as { id?: unknown }).id : undefined
  return typeof id === 'string' ? id : undefined
}
