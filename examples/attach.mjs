// Attaches to a session over its WebSocket and comes back by itself after a cut. With a directory it creates the session first:
// node examples/attach.mjs <api url> <session id | directory> [prompt]        the token, if there is need of one, is $TOKEN
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import WebSocket from 'ws'

const [api, target, prompt] = process.argv.slice(2)
if (!api || !target) {
  console.error('usage: [TOKEN=…] node examples/attach.mjs http://127.0.0.1:8787/v1 SESSION_ID|DIRECTORY [PROMPT]')
  process.exit(2)
}
const headers = process.env.TOKEN ? { authorization: `Bearer ${process.env.TOKEN}` } : {}
const sessionId = target.includes('/') ? await create(resolve(target)) : target

let socket
let place = ''
let pending
let typing

function attach() {
  socket = new WebSocket(`${api.replace(/^http/, 'ws')}/sessions/${sessionId}/ws${place}`, { headers })
  socket.on('message', (data) => show(JSON.parse(data)))
  socket.on('error', (error) => console.error(error.message))
  socket.on('close', (code, reason) => {
    // 1001 and 1013: come back where you were; a cut shows as 1006
    if ([1001, 1006, 1013].includes(code) && place) setTimeout(attach, 1000)
    else {
      if (code !== 1000) console.error(`closed: ${code} ${reason}`)
      process.exit(code === 1000 ? 0 : 1)
    }
  })
}

async function create(cwd) {
  const response = await fetch(`${api}/sessions`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ cwd, ...(prompt && { prompt }) }),
  })
  const answer = await response.json()
  if (!response.ok) {
    console.error(`${answer.code}: ${answer.detail}`)
    process.exit(1)
  }
  console.log(
    `session ${answer.id}; type to talk, /allow and /deny to decide, /stop to interrupt, /close to end it, Ctrl+C to leave`,
  )
  return answer.id
}

function show(frame) {
  if (frame.type === 'attached') {
    pending = frame.pendingPermissions[0]
    place = `?afterSeq=${frame.replayingFrom}&epoch=${frame.epoch}`
  } else if (frame.type === 'command_error') console.log(`! ${frame.message}`)
  if (frame.type !== 'event') return
  const { event } = frame
  place = place.replace(/afterSeq=\d+/, `afterSeq=${event.seq}`)
  if (event.type === 'stream_delta') {
    // thinking and text are blocks of one message
    const block = `${event.uuid}:${event.blockIndex}`
    if (typing && typing !== block) process.stdout.write('\n')
    typing = block
    process.stdout.write(event.delta.text ?? '')
    return
  }
  if (typing) process.stdout.write('\n')
  if (event.type === 'assistant_message' && !typing) showMessage(event.message)
  typing = undefined
  if (event.type === 'user_message' && !event.synthetic) console.log(`> ${event.message.content}`)
  else if (event.type === 'permission_requested') {
    pending = event.request
    console.log(`? ${pending.toolName} ${JSON.stringify(pending.input)}   /allow or /deny`)
  } else if (event.type === 'file_delivered') console.log(`+ ${event.path} (${event.bytes} bytes)`)
  else if (event.type === 'status_changed') console.log(`[${event.status}]`)
  else if (event.type === 'session_error') console.log(`! ${event.message}`)
}

function showMessage({ content }) {
  for (const block of typeof content === 'string' ? [{ text: content }] : content)
    if (block.text) console.log(block.text)
}

createInterface({ input: process.stdin }).on('line', (line) => {
  if (line === '') return
  if (socket?.readyState !== WebSocket.OPEN) return console.log('! not connected; say it again in a moment')
  if (line === '/stop') socket.send(JSON.stringify({ type: 'interrupt' }))
  else if (line === '/close') socket.send(JSON.stringify({ type: 'close' }))
  else if (line === '/allow' || line === '/deny')
    socket.send(JSON.stringify({ type: 'permission_decision', requestId: pending?.id ?? '', behavior: line.slice(1) }))
  else socket.send(JSON.stringify({ type: 'user_message', text: line }))
})

attach()
