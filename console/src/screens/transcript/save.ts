import { emptyTranscript, foldTranscript, type SessionEvent, type SessionInfo } from '../../../../client/index.js'
import { client } from '../../api.js'
import { headMarkdown, itemMarkdown } from '../../model/export.js'
import { fileNameOf } from '../../model/file-name.js'
import { save } from '../../parts/save.js'
import { texts } from '../../texts.js'

type Format = 'markdown' | 'json'

/** What the whole log says, in pieces. */
async function pieces(session: SessionInfo, format: Format): Promise<string[]> {
  const parts: string[] =
    format === 'json' ? [`{"session":${JSON.stringify(session)},"events":[`] : [headMarkdown(session)]
  const events: SessionEvent[] = []
  let isFirst = true
  for await (const page of client.sessions.events(session.id).pages()) {
    if (format === 'markdown') events.push(...page.filter(({ type }) => type !== 'stream_delta'))
    else
      for (const event of page) {
        parts.push(`${isFirst ? '\n' : ',\n'}${JSON.stringify(event)}`)
        isFirst = false
      }
  }
  if (format === 'json') parts.push('\n]}\n')
  else for (const item of foldTranscript(events, emptyTranscript).items) parts.push(itemMarkdown(item))
  return format === 'json' ? parts : parts.filter(Boolean).map((part) => `${part}\n\n`)
}

export async function downloadTranscript(session: SessionInfo, format: Format): Promise<void> {
  const ending = format === 'json' ? 'json' : 'md'
  save(`${fileNameOf(session.title, 'session')}.${ending}`, new Blob(await pieces(session, format)))
}

export async function copyTranscript(session: SessionInfo, format: Format): Promise<void> {
  // not there for pages over plain http
  if (!('clipboard' in navigator)) throw new Error(texts.transcript.noClipboard)
  const text = pieces(session, format).then((parts) => new Blob(parts, { type: 'text/plain' }))
  // the browser wants to be asked at once, while the press of the button is fresh
  await navigator.clipboard.write([new ClipboardItem({ 'text/plain': text })])
}

export async function saveFile(sessionId: string, path: string): Promise<void> {
  save(fileNameOf(path.split('/').at(-1) ?? '', 'file'), await client.sessions.file(sessionId, path))
}
