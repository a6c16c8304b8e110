import { shortPath } from '../../src/daemon/config-problem.js'
import { writeStartingPoint } from '../../src/daemon/starting-point.js'
import { shellWord } from '../../src/lib/shell-word.js'

/** Writes a configuration to start with and says what to do next. */
export function init(path: string): void {
  const { file, workspace, token } = writeStartingPoint(path)
  const shown = shortPath(file)
  const run = process.env.npm_command === 'exec' ? 'npx session-gateway' : 'session-gateway'
  const config = shown === 'gateway.json' ? '' : ` --config ${shellWord(shown)}`
  process.stdout.write(`Wrote ${shown}, for your eyes only, and the folder ${shortPath(workspace)}, in which sessions may start.

Your token, shown this once; the file has only its SHA-256:

  export TOKEN=${token}

Next:

  ${run}${config}

and once it listens, in a terminal that has that token in $TOKEN, too:

  ${run} login --token "$TOKEN"
  ${run} run --cwd ${shellWord(shortPath(workspace))} "Please write a report."
`)
}
