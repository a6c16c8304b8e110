import type { SessionInfo } from '../../../schemas/sessions.js'

/** A SessionInfo for the cases of stores, with what is easily lost on the way through one: other scripts, `null`, an empty object. */
export const sampleInfo = (id: string, status: SessionInfo['status']): SessionInfo => ({
  id,
  status,
  profile: 'assistant',
  engine: 'provider',
  title: 'Zwölf "Boxkämpfer" 🥊',
  cwd: '/srv/work',
  createdAt: 1_760_000_000_000,
  lastActivityAt: 1_760_000_001_000,
  lastSeq: 7,
  pendingPermissions: 1,
  attachedClients: 0,
  numTurns: 1,
  cost: 0.25,
  usage: { inputTokens: 1, outputTokens: 2, cacheCreationTokens: 3, cacheReadTokens: 4 },
  meta: { nested: [{ deep: null }], empty: {} },
})
