import { STORES } from './codes.js'
import * as examples from './examples.js'
import type { Operation } from './operations.js'

/** What was used, and what helps to begin. */
export const USAGE_OPERATIONS: Record<string, Operation> = {
  'GET /usage': {
    id: 'getUsage',
    summary: 'Read what was used',
    description:
      'Tokens, cost, turns, approvals and jobs of the profiles that the caller may see, as sums by UTC day, profile, agent or person, or several of them. With `Accept: text/csv` as a table.',
    codes: ['SG_ERR_VALIDATION', ...STORES],
    answer: examples.usageReport,
    csv: examples.usageTable,
  },
  'GET /directories': {
    id: 'listDirectories',
    summary: 'Complete a directory',
    description:
      'Up to 50 directories that a session may start in and that begin as `prefix` does; without it, where they may start. Names that begin with a dot are left out, unless `hidden` or what is typed asks for them. What lies outside `allowedCwdRoots` is as if it were not there.',
    codes: ['SG_ERR_VALIDATION', ...STORES],
    answer: { directories: ['/srv/projects/site', '/srv/projects/sitemap'], truncated: false },
  },
}
