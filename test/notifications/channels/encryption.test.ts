import { createECDH, hkdfSync, randomBytes } from 'node:crypto'
import { decrypt as decryptRfc8188, encodings } from '@apeleghq/rfc8188'
import { importJWK, jwtVerify } from 'jose'
import t from 'tap'
import { newVapidKeys, renderWebPush } from '../../../src/notifications/channels/web-push.js'
import { decrypt } from '../../fixtures/push-service.js'
import { notification } from '../../fixtures/told.js'

const ENDPOINT = 'https://push.example/send/1'
const bytes = (text: string) => Buffer.from(text, 'base64url')

function browserOf(privateKey?: string, secret = randomBytes(16)) {
  const ecdh = createECDH('prime256v1')
  if (privateKey === undefined) ecdh.generateKeys()
  else ecdh.setPrivateKey(bytes(privateKey))
  const keys = { p256dh: ecdh.getPublicKey('base64url'), auth: secret.toString('base64url') }
  return { ecdh, secret, to: { endpoint: ENDPOINT, keys } }
}

function sent(to: ReturnType<typeof browserOf>['to']) {
  const keys = newVapidKeys()
  const from = { subject: 'mailto:ops@example.com', ...keys }
  const told = notification({ preview: 'Bash asks to run: ü 🦊' })
  return { ...renderWebPush(told, { id: 's:7', now: Date.now(), answerUrl: undefined }, { to, from }), ...keys }
}

// a browser cannot be asked: offline, Chromium's pushManager.subscribe waits for its push service without an end
t.test('the stand-in for a push service reads the example of RFC 8291, section 5', async (t) => {
  const browser = browserOf('q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94', bytes('BTBZMqHH6r4Tts7J_aSIgg'))
  t.equal(
    browser.to.keys.p256dh,
    'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
    'the key of the example',
  )
  const message = bytes(
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
  )
  t.equal(decrypt(message, browser), 'When I grow up, I want to be a watermelon')
  for (const at of [0, 21, 90, message.length - 1]) {
    const spoiled = Buffer.from(message)
    spoiled[at]! ^= 1
    t.throws(() => decrypt(spoiled, browser), `byte ${at} is another one`)
  }
})

t.test('what is sent is read by a library that neither wrote it nor knows who did', async (t) => {
  const { ecdh, secret, to } = browserOf()
  const { body } = sent(to)
  // RFC 8291, 3.3 and 3.4: the key of the sender is the id of the key, and both keys are in what the library derives its own from
  const keyOf = (senderKey: ArrayBufferLike) => {
    const info = Buffer.concat([Buffer.from('WebPush: info\0'), ecdh.getPublicKey(), new Uint8Array(senderKey)])
    return hkdfSync('sha256', ecdh.computeSecret(new Uint8Array(senderKey)), secret, info, 32)
  }
  const sealed = new Blob([new Uint8Array(body)]).stream()
  const chunks: Uint8Array[] = []
  for await (const chunk of decryptRfc8188(encodings.aes128gcm, sealed, keyOf, 4096)) chunks.push(new Uint8Array(chunk))
  const read = JSON.parse(Buffer.concat(chunks).toString())
  t.match(read, { id: 's:7', type: 'permission_requested', body: 'Bash asks to run: ü 🦊' })
  t.same(read, JSON.parse(decrypt(body, { ecdh, secret })), 'and it reads what the stand-in reads')
})

t.test('who sends it is proved to a library for such tokens', async (t) => {
  const { headers, publicKey } = sent(browserOf().to)
  const [, token = '', key] = /^vapid t=([^,]+), ?k=(.+)$/.exec(headers.authorization ?? '') ?? []
  t.equal(key, publicKey)
  const point = bytes(publicKey)
  const part = (from: number) => point.subarray(from, from + 32).toString('base64url')
  const jwk = await importJWK({ kty: 'EC', crv: 'P-256', x: part(1), y: part(33) }, 'ES256')
  const rules = { algorithms: ['ES256'], audience: new URL(ENDPOINT).origin }
  const { payload } = await jwtVerify(token, jwk, rules)
  t.equal(payload.sub, 'mailto:ops@example.com')
  const leftS = payload.exp! - Date.now() / 1000
  t.ok(leftS > 0 && leftS <= 24 * 60 * 60, `valid for ${leftS} s: RFC 8292 has a day at most`)
  await t.rejects(jwtVerify(token, jwk, { ...rules, audience: 'https://other.example' }), /"aud"/)
})
