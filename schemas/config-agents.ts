import { Type } from '@sinclair/typebox'
import { PATH_MARK, Path, SecretRecord, Section, VariableName } from './config-parts.js'
import { CLI_PERMISSION_MODES } from './permissions.js'

/** A command-line agent that is declared, or fields of one that is built in. */
export const Agent = Section({
  name: Type.String({ minLength: 1, description: 'A new name, or a built-in agent of which fields are replaced.' }),
  command: Type.Optional(
    Path({ [PATH_MARK]: 'command', description: 'Executable; looked up in PATH unless it contains a slash.' }),
  ),
  args: Type.Optional(Type.Array(Type.String())),
  env: Type.Optional(
    SecretRecord({ description: "Added to the environment of the agent, over what it gets of the gateway's." }),
  ),
  configDirEnv: Type.Optional(Type.String({ minLength: 1, description: 'Variable that names its config directory.' })),
  modes: Type.Optional(
    Section(Object.fromEntries(CLI_PERMISSION_MODES.map((mode) => [mode, Type.Optional(Type.String())])), {
      description: 'permissionMode to the name the agent has for it.',
    }),
  ),
  auth: Type.Optional(
    Section(
      {
        method: Type.String({ minLength: 1, description: "The agent's own name of a way to log in." }),
        apiKeyEnv: Type.Optional(VariableName({ description: 'Variable that holds the key it takes; never the key.' })),
      },
      { description: 'How it logs in, when it asks for that.' },
    ),
  ),
})
