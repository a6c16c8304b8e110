import fc from 'fast-check'
import t from 'tap'
import type { InboxItem, ListInboxQuery } from '../../schemas/notifications.js'
import { ASK_USER_QUESTION } from '../../schemas/permissions.js'
import { silentLogger } from '../../src/lib/logger.js'
import { Inbox } from '../../src/notifications/inbox.js'
import type { Principal } from '../../src/principal.js'
import type { WaitingRequest } from '../../src/sessions/asks/waiting.js'
import { someRecord } from '../fixtures/parked.js'

const WAITING = 10_000
const PROFILES = 200

/** As many approvals as the figures are promised for. */
function crowd() {
  const waiting = new Map<string, WaitingRequest>()
  const inbox = new Inbox({
    logger: silentLogger,
    find: (sessionId, requestId) => {
      const { request, profile } = waiting.get(requestId)!
      return { request, session: { ...someRecord(sessionId).info, profile } }
    },
  })
  for (let n = 0; n < WAITING; n++) {
    const toolName = n % 7 === 0 ? ASK_USER_QUESTION : 'Write'
    const one: WaitingRequest = {
      sessionId: `session-${n % 9_000}`,
      // one session is of one profile
      profile: `profile-${((n % 9_000) * 7919) % PROFILES}`,
      request: { id: `request-${n}`, toolName, toolUseId: 't', input: {} },
      place: { seq: 1, since: 1_000, order: inbox.nextOrder(1_000) },
    }
    waiting.set(one.request.id, one)
    inbox.onWaiting(one)
  }
  return { inbox, waiting }
}

function all(inbox: Inbox, query: ListInboxQuery, principal: Principal): InboxItem[] {
  const items: InboxItem[] = []
  for (let cursor = query.cursor; ; ) {
    const page = inbox.page({ ...query, ...(cursor !== undefined && { cursor }) }, principal)
    items.push(...page.items)
    if (page.next === undefined) return items
    cursor = page.next
  }
}

const name = fc.nat(PROFILES + 5).map((n) => `profile-${n}`)
const principal = fc.oneof(
  fc.constant<Principal>({}),
  fc.array(name, { maxLength: 20 }).map((names): Principal => ({ allowedProfiles: new Set(names) })),
  fc.array(name, { maxLength: 20 }).map((names): Principal => ({ allowedProfiles: names })),
)
const query = fc.record(
  {
    limit: fc.integer({ min: 20, max: 200 }),
    profile: name,
    kind: fc.constantFrom('permission' as const, 'question' as const),
    sessionId: fc.nat(9_010).map((n) => `session-${n}`),
  },
  { requiredKeys: [] },
)

t.test(
  `of ${WAITING} approvals over ${PROFILES} profiles everybody sees exactly their own, oldest first`,
  async (t) => {
    const { inbox, waiting } = crowd()
    const sees = ({ allowedProfiles }: Principal, profile: string) =>
      allowedProfiles === undefined || [...allowedProfiles].includes(profile)
    const kindOf = ({ request }: WaitingRequest) => (request.toolName === ASK_USER_QUESTION ? 'question' : 'permission')
    const settled = fc.array(fc.nat(WAITING - 1), { maxLength: 5 })
    fc.assert(
      fc.property(principal, query, settled, (principal, { limit, ...filter }, gone) => {
        for (const n of gone) {
          const one = waiting.get(`request-${n}`)
          if (!one) continue
          inbox.onResolved(one.sessionId, one.request.id)
          waiting.delete(one.request.id)
        }
        const mine = [...waiting.values()].filter(({ profile }) => sees(principal, profile))
        const count = inbox.count(principal)
        const questions = mine.filter((one) => kindOf(one) === 'question').length
        if (count.questions !== questions || count.permissions !== mine.length - questions)
          throw new Error(`${JSON.stringify(count)} of ${mine.length}`)
        const expected = mine.filter(
          (one) =>
            (filter.profile === undefined || one.profile === filter.profile) &&
            (filter.kind === undefined || kindOf(one) === filter.kind) &&
            (filter.sessionId === undefined || one.sessionId === filter.sessionId),
        )
        const found = all(inbox, { ...filter, ...(limit !== undefined && { limit }) }, principal)
        const ids = (list: { request: { id: string } }[]) => list.map(({ request }) => request.id).join()
        if (ids(found) !== ids(expected)) throw new Error(`${found.length} found, ${expected.length} expected`)
      }),
      { numRuns: 60 },
    )
    for (let n = 0; n < 9_000; n++) inbox.onNothingWaits(`session-${n}`)
    t.same(inbox.count({}), { permissions: 0, questions: 0 })
    t.same(inbox.page({}, {}).items, [])
  },
)
