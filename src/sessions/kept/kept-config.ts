import type { SessionRunnerConfig } from '../../engines/runner.js'
import type { JournaledState } from './journal.js'

/** What only the host sets is never written down; the title is the one that the session has by now. */
export function keptConfig(request: SessionRunnerConfig, hostTitle: string | undefined): SessionRunnerConfig {
  const { env: _env, defaultApprovalTimeoutMs: _timeout, agentOptions: _options, title: _title, ...kept } = request
  return hostTitle === undefined ? kept : { ...kept, title: hostTitle }
}

/** The request, with what was chosen since. */
export function withChoice({ request, chosen }: { request: SessionRunnerConfig; chosen: JournaledState['chosen'] }) {
  if (!chosen) return request
  const { model: asked, ...rest } = request
  const model = chosen.model === undefined ? asked : (chosen.model ?? undefined)
  const permissionMode = chosen.permissionMode ?? request.permissionMode
  return { ...rest, ...(model !== undefined && { model }), ...(permissionMode !== undefined && { permissionMode }) }
}
