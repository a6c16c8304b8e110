import type { SessionInfo, ToolPart, TranscriptItem } from '../../../client/index.js'
import { jsonText } from './json-text.js'
import { outputsOf, ranWith, summaryOf } from './tool-summary.js'
import { visible, visibleLine, visibleOutput } from './visible.js'

const MAX_BLOCK = 100_000

/** A fence that the text within cannot close. */
function fenced(text: string, language = ''): string {
  const longest = Math.max(0, ...[...text.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(Math.max(3, longest + 1))
  return `${fence}${language}\n${text}\n${fence}`
}

function toolMarkdown(tool: ToolPart): string {
  const ran = ranWith(tool)
  const lines = [
    `**${visibleLine(tool.name, 80)}** ${visibleLine(summaryOf(ran), 120)} (${tool.status})`.replace('  ', ' '),
  ]
  lines.push(fenced(jsonText(ran, MAX_BLOCK).text, 'json'))
  if (ran !== tool.input) lines.push('Asked for:', fenced(jsonText(tool.input, MAX_BLOCK).text, 'json'))
  for (const output of outputsOf(tool.result))
    if (output.type === 'text') lines.push(fenced(visibleOutput(output.text.slice(0, MAX_BLOCK))))
    else if (output.type === 'json') lines.push(fenced(jsonText(output.value, MAX_BLOCK).text, 'json'))
    else lines.push(`(image, ${output.mime})`)
  return lines.join('\n\n')
}

/** One item of a transcript as Markdown; empty for what has nothing to say. */
export function itemMarkdown(item: TranscriptItem): string {
  const at = new Date(item.ts).toISOString()
  switch (item.kind) {
    case 'message': {
      const parts = item.parts.flatMap((part) => {
        if (part.type === 'text') return [visible(part.text)]
        if (part.type === 'thinking') return [visible(part.text).replace(/^/gm, '> ')]
        return part.type === 'tool' ? [toolMarkdown(part)] : []
      })
      return [`## ${item.role === 'user' ? 'User' : 'Assistant'} · ${at}`, ...parts].join('\n\n')
    }
    case 'turn':
      return item.isError ? `*${item.subtype}: ${visibleLine(item.errors?.join(' ') ?? '', 1000)}*` : ''
    case 'file':
      return `*File: ${visibleLine(item.path)}*`
    case 'execution':
      return `*${visibleLine(item.toolName)}: ${item.status}*`
    case 'error':
      return `*Error: ${visibleLine(item.message, 1000)}*`
  }
}

/** The beginning of a whole transcript as Markdown. */
export const headMarkdown = ({ title, cwd, profile, id }: SessionInfo): string =>
  `# ${visibleLine(title, 300)}\n\n${visibleLine(profile, 80)} · ${visibleLine(cwd, 500)} · ${id}\n`
