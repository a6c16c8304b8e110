import t from 'tap'
import {
  createTokenAuthenticate,
  createTokenLookup,
  generateToken,
  hashToken,
  tokenProblems,
  tokenWarnings,
} from '../../src/daemon/tokens.js'
import { VirtualClock } from '../fixtures/virtual-clock.js'

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

t.test('generated tokens differ and fit into a header', async (t) => {
  const tokens = new Set(Array.from({ length: 100 }, generateToken))
  t.equal(tokens.size, 100)
  for (const token of tokens) t.match(token, /^sgw_[A-Za-z0-9_-]{43}$/)
})

t.test('a token lets its principal in, and nothing else does', async (t) => {
  const [ours, theirs] = [generateToken(), generateToken()]
  const authenticate = createTokenAuthenticate([
    { name: 'ours', sha256: hashToken(ours), allowedProfiles: ['a'], canManageProfiles: true },
    { name: 'theirs', sha256: hashToken(theirs) },
  ])
  t.strictSame(authenticate(bearer(ours)), { name: 'ours', allowedProfiles: ['a'], canManageProfiles: true })
  t.strictSame(authenticate(bearer(theirs)), { name: 'theirs' }, 'no limit where none is configured')
  t.strictSame(
    authenticate({ headers: { authorization: `bearer  ${theirs}` } }),
    { name: 'theirs' },
    'scheme in any case',
  )
  const refused: Record<string, { headers: Record<string, string> }> = {
    'another token': bearer(generateToken()),
    'its hash': bearer(hashToken(ours)),
    'a part of it': bearer(ours.slice(0, -1)),
    'more than it': bearer(`${ours}x`),
    'another scheme': { headers: { authorization: `Basic ${ours}` } },
    'no scheme': { headers: { authorization: ours } },
    'no token': { headers: { authorization: 'Bearer ' } },
    nothing: { headers: {} },
  }
  for (const [what, request] of Object.entries(refused)) t.equal(authenticate(request), undefined, what)
})

t.test('a browser offers it as a subprotocol, on upgrades only', async (t) => {
  const token = generateToken()
  const authenticate = createTokenAuthenticate([{ name: 'web', sha256: hashToken(token) }])
  const protocols = { 'sec-websocket-protocol': `session-gateway, session-gateway.bearer.${token}` }
  t.match(authenticate({ headers: { ...protocols, upgrade: 'websocket' } }), { name: 'web' })
  t.equal(authenticate({ headers: protocols }), undefined, 'not on a plain request')
  t.equal(authenticate({ headers: { ...protocols, upgrade: 'websocket', authorization: 'Bearer x' } }), undefined)
})

t.test('a token ends when it says', async (t) => {
  const clock = new VirtualClock(Date.parse('2026-01-01T00:00:00Z'))
  const token = generateToken()
  for (const expiresAt of ['2026-01-01T01:00:00Z', Date.parse('2026-01-01T01:00:00Z')]) {
    const authenticate = createTokenAuthenticate([{ name: 'a', sha256: hashToken(token), expiresAt }], clock)
    await clock.advance(Date.parse('2026-01-01T00:59:59.999Z') - clock.now())
    t.match(authenticate(bearer(token)), { name: 'a' })
    const later = new VirtualClock(Date.parse('2026-01-01T01:00:00Z'))
    t.equal(
      createTokenAuthenticate([{ name: 'a', sha256: hashToken(token), expiresAt }], later)(bearer(token)),
      undefined,
    )
  }
})

t.test('names and tokens are unique, dates are dates', async (t) => {
  const sha256 = hashToken('x')
  t.strictSame(
    tokenProblems([
      { name: 'a', sha256 },
      { name: 'a', sha256, expiresAt: 'tomorrow' },
    ]).map(({ path }) => path),
    ['auth.tokens[1].name', 'auth.tokens[1].sha256', 'auth.tokens[1].expiresAt'],
  )
  t.strictSame(tokenProblems([{ name: 'a', sha256, expiresAt: '2026-12-31' }]), [])
})

t.test('two names that would be cut to the same one are two tokens of one name', async (t) => {
  const long = 'n'.repeat(200)
  const [problem, ...others] = tokenProblems([
    { name: `${long} of the office`, sha256: hashToken('x') },
    { name: `${long} of a guest`, sha256: hashToken('y') },
    { name: 'n'.repeat(199), sha256: hashToken('z') },
  ])
  t.match(problem, { path: 'auth.tokens[1].name', message: /first 200 characters/ })
  t.strictSame(others, [])
})

t.test('a token that lets nobody in, or into nothing, is told of', async (t) => {
  const clock = new VirtualClock()
  const sha256 = hashToken('token')
  const profiles = [{ name: 'demo' }]
  const typo = { name: 'typo', sha256, allowedProfiles: ['demo', 'dem'] }
  const over = { name: 'over', sha256, expiresAt: clock.now() }
  const fine = { name: 'fine', sha256, allowedProfiles: ['demo'], expiresAt: clock.now() + 1 }
  t.match(tokenWarnings({ auth: { tokens: [typo, fine, over] }, profiles }, clock), [
    { path: 'auth.tokens[0].allowedProfiles[1]', message: /^there is no profile "dem", .* declared are demo$/ },
    {
      path: 'auth.tokens[2].expiresAt',
      message: `it ended at ${new Date(clock.now()).toISOString()}; give a later time`,
    },
  ])
  const made = { auth: { tokens: [typo] }, profiles, profileStore: true as const }
  t.same(tokenWarnings(made, clock), [], 'a profile may be made later')
})

t.test('a name stands for its token, while that is valid', async (t) => {
  const clock = new VirtualClock()
  const sha256 = hashToken('x')
  const tokens = [
    { name: 'ann', sha256, allowedProfiles: ['one'], expiresAt: clock.now() + 1_000 },
    { name: 'bob', sha256: hashToken('y') },
  ]
  const callerNamed = createTokenLookup(tokens, clock)
  t.same([...(callerNamed('ann')?.allowedProfiles ?? [])], ['one'])
  t.equal(callerNamed('bob')?.allowedProfiles, undefined)
  for (const name of ['eve', '', undefined]) t.equal(callerNamed(name), undefined)
  await clock.advance(1_000)
  t.equal(callerNamed('ann'), undefined)
})
