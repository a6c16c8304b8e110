import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import t from 'tap'
import { type AnswerGrant, readGrant, signGrant } from '../../../src/notifications/answers/token.js'

const key = randomBytes(32)
const grant: AnswerGrant = { sessionId: 's', requestId: 'r', channel: 'phone/1', seq: 7, expiresAt: 1_000 }

t.test('what was signed is read, and fits a URL as it is', async (t) => {
  const token = signGrant(grant, key)
  t.same(readGrant(token, key), grant)
  t.match(token, /^[\w.-]+$/)
  t.equal(readGrant(token, randomBytes(32)), undefined, 'after the key was rotated')
})

t.test('whatever is changed of it, it is none of ours', async (t) => {
  const token = signGrant(grant, key)
  for (let length = 0; length < token.length; length++) t.equal(readGrant(token.slice(0, length), key), undefined)
  for (const changed of [
    '',
    '.',
    `${token}=`,
    `${token} `,
    ` ${token}`,
    `${token}.`,
    token.replace('.', '..'),
    'ü'.repeat(100),
  ])
    t.equal(readGrant(changed, key), undefined, changed)
  fc.assert(
    fc.property(fc.nat(token.length - 1), fc.constantFrom(...'ABCxyz019-_.'), (at, letter) => {
      fc.pre(token[at] !== letter)
      return readGrant(token.slice(0, at) + letter + token.slice(at + 1), key) === undefined
    }),
  )
  // of one signature there is one spelling, also in the bits of its last letter that say nothing
  const [claims = '', signature = ''] = token.split('.')
  const same = [...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_']
    .map((last) => signature.slice(0, -1) + last)
    .filter((other) => Buffer.from(other, 'base64url').equals(Buffer.from(signature, 'base64url')))
  t.ok(same.length > 1, 'several spellings decode to it')
  t.same(
    same.filter((other) => readGrant(`${claims}.${other}`, key)),
    [signature],
  )
})

t.test('what one link is bound to cannot be put into another', async (t) => {
  const [, signature] = signGrant(grant, key).split('.')
  for (const other of [
    { sessionId: 'x' },
    { requestId: 'x' },
    { channel: 'phone/2' },
    { seq: 8 },
    { expiresAt: 2_000 },
  ]) {
    const [claims] = signGrant({ ...grant, ...other }, randomBytes(32)).split('.')
    t.equal(readGrant(`${claims}.${signature}`, key), undefined, JSON.stringify(other))
  }
})
