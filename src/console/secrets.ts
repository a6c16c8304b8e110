import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto'
import { tried } from '../lib/tried.js'

const CIPHER = 'aes-256-gcm'
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** What the browser holds: 256 random bits. */
export const newSecret = (): string => randomBytes(32).toString('base64url')

/** By which a secret is found again; nothing leads from it to the secret. */
export const hashOfSecret = (secret: string): string => createHash('sha256').update(secret).digest('hex')

/**
 * Seals a token so that it can be read with the secret alone, which is kept by the browser and nowhere else: neither the cookie nor the
 * storage has the token by itself.
 */
export function sealToken(token: string, secret: string, id: string): string {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv(CIPHER, keyOf(secret), nonce).setAAD(Buffer.from(id))
  const sealed = Buffer.concat([cipher.update(token, 'utf8'), cipher.final()])
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString('base64url')
}

/** @returns undefined for what was not sealed under this secret and id */
export function openToken(sealedToken: string, secret: string, id: string): string | undefined {
  const bytes = Buffer.from(sealedToken, 'base64url')
  const [nonce, tag] = [bytes.subarray(0, NONCE_BYTES), bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES)]
  if (tag.length !== TAG_BYTES) return undefined
  return tried(() => {
    const decipher = createDecipheriv(CIPHER, keyOf(secret), nonce).setAAD(Buffer.from(id)).setAuthTag(tag)
    return decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
  })
}

const keyOf = (secret: string): Buffer => Buffer.from(hkdfSync('sha256', secret, '', 'session-gateway sign-in', 32))
