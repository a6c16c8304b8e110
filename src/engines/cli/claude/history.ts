import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import type { RunnerEvent } from '../../runner.js'
import { configDirOf } from '../environment.js'
import type { AgentSetup } from '../launch.js'
import { readingOf } from './readable.js'
import { filesWithSdk, type SdkSessionMessage } from './sdk-worker.js'
import type { ClaudeSetup, ClaudeState } from './setup.js'
import { assistantMessage, contentOf } from './translate.js'

/**
 * The messages of an earlier session, as events marked as a replay.
 * @param env the environment of the session, which says where the transcripts lie
 */
export async function replayOf(
  specifier: string,
  env: Record<string, string>,
  sessionId: string,
): Promise<RunnerEvent[]> {
  const messages = await filesWithSdk(specifier, env, 'getSessionMessages', [sessionId, {}])
  return messages.flatMap((message) => replayed(message) ?? [])
}

/** Whether the agent has written anything of a session down. */
async function hasTranscript(specifier: string, env: Record<string, string>, sessionId: string): Promise<boolean> {
  return (await filesWithSdk(specifier, env, 'getSessionMessages', [sessionId, {}])).length > 0
}

/** The predecessor's session, when the agent knows it. */
export async function takenOver(
  { sdkSpecifier, env }: ClaudeSetup,
  restored: ClaudeState | undefined,
): Promise<string | undefined> {
  if (!restored) return undefined
  const { sdkSessionId, isFresh } = restored
  return !isFresh || (await hasTranscript(sdkSpecifier, env, sdkSessionId)) ? sdkSessionId : undefined
}

/** Whether an agent that did not start has nothing of its session any more. */
export async function isForgotten(
  { sdkSpecifier, row, env }: Pick<AgentSetup, 'row' | 'env'> & { sdkSpecifier: string },
  sessionId: string,
): Promise<boolean> {
  // on a mount that is gone everything seems to be
  const directory = configDirOf(row, env)
  const isThere = directory !== undefined && (await stat(directory).catch(() => undefined)) !== undefined
  return isThere && !(await hasTranscript(sdkSpecifier, env, sessionId).catch(() => true))
}

/** @returns undefined for what cannot be read, and for what nobody said */
function replayed(written: SdkSessionMessage): RunnerEvent | undefined {
  const { message: said } = readingOf(written)
  if (said?.type !== 'assistant' && said?.type !== 'user') return undefined
  const common = { uuid: said.uuid ?? randomUUID(), parentToolUseId: said.parent_tool_use_id, replay: true }
  if (said.type === 'assistant') return { type: 'assistant_message', message: assistantMessage(said), ...common }
  const content = contentOf(said.message.content)
  const isToolResult = typeof content !== 'string' && content.some((block) => block.type === 'tool_result')
  return {
    type: 'user_message',
    message: { role: 'user', content },
    ...common,
    ...(isToolResult && { synthetic: true }),
  }
}
