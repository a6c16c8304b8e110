import t from 'tap'
import { typeErrors } from '../docs/typed.js'

/** What a strict compiler says of a program of somebody who uses the client. */
const errorsOf = (text: string): string[] => typeErrors([{ at: 'types', name: 'program.ts', text, blocks: [] }])

t.test('the sockets of ws, of Node and of undici are taken as they are', async (t) => {
  t.strictSame(
    errorsOf(`
import { createClient } from 'session-gateway/client'
import { WebSocket as UndiciSocket } from 'undici'
import WS, { WebSocket as Named } from 'ws'

const baseUrl = 'http://127.0.0.1:8787/v1'
for (const WebSocket of [WS, Named, UndiciSocket, globalThis.WebSocket, undefined]) createClient({ baseUrl, WebSocket })
createClient({ baseUrl, WebSocket: WS, fetch })
`),
    [],
  )
})
