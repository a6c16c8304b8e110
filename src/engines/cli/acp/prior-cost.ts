import { whenAborted } from '../../../lib/aborted.js'
import { markerEnv } from '../markers.js'
import { AgentProcess } from '../process.js'
import { privateFolder } from '../workspace/private-files.js'
import type { AcpSetup } from './setup.js'

const LIMIT_MS = 30_000
/** The figure stands before the history, which is of any length. */
const READ_CHARS = 65_536

/**
 * What the agent's session had cost before it is resumed, for an agent that tells it by a command alone.
 * @param signal nobody wants to know any more
 * @returns undefined when that is not known
 */
export async function priorCostUsd(
  { command, env, row, sessionId, clock }: AcpSetup,
  resumed: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  const asked = row.acp?.priorCost
  if (!asked) return undefined
  const over = new AbortController()
  const limit = clock.after(LIMIT_MS, () => over.abort())
  let agent: AgentProcess | undefined
  try {
    // the system refuses at once what cannot be an argument, as any text that a caller takes for an id
    agent = new AgentProcess({
      ...{ command, args: asked.args(resumed), cwd: await privateFolder() },
      // where it is started is not the session's working directory, which may be trusted
      env: { ...env, ...row.untrusted?.env, ...(await markerEnv(sessionId)) },
    })
    agent.child.stdin.end()
    return await Promise.race([
      figureIn(agent.child.stdout.setEncoding('utf8'), asked.figure),
      whenAborted(AbortSignal.any([signal, over.signal])),
    ])
  } catch {
    return undefined
  } finally {
    limit.cancel()
    await agent?.stop(0)
  }
}

async function figureIn(output: AsyncIterable<string>, figure: RegExp): Promise<number | undefined> {
  let text = ''
  for await (const piece of output) {
    text += piece
    const found = figure.exec(text)?.[1]
    if (found !== undefined) return Number(found)
    if (text.length > READ_CHARS) return undefined
  }
  return undefined
}
