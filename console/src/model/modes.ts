import type { PermissionMode } from '../../../client/index.js'

const PROVIDER: readonly PermissionMode[] = ['default', 'dontAsk', 'bypassPermissions']
const CLI: readonly PermissionMode[] = ['default', 'acceptEdits', 'plan', 'auto', 'dontAsk', 'bypassPermissions']

/** The permission modes that sessions of an engine know. */
export const modesOf = (engine: 'cli' | 'provider' | undefined): readonly PermissionMode[] =>
  engine === 'cli' ? CLI : PROVIDER
