import { ReadableStream } from 'node:stream/web'
import { setTimeout as delay, setImmediate as nextTick } from 'node:timers/promises'
import { untilAborted } from '../../lib/aborted.js'
import type { DemoAnswer } from './demo-answer.js'
import type { LanguageModel } from './models.js'

type Model = Extract<LanguageModel, { specificationVersion: 'v3' }>
type CallOptions = Parameters<Model['doStream']>[0]
type Prompt = CallOptions['prompt']
type StreamResult = Awaited<ReturnType<Model['doStream']>>
type StreamPart = StreamResult['stream'] extends AsyncIterable<infer Part> ? Part : never

export const DEMO_MODEL = 'demo'

/** What the model is asked: the newest user message, and what has happened since. */
interface Situation {
  request: string
  /** Answers given since the request. */
  step: number
  lastResult: { tool: string; text: string; isError: boolean } | undefined
  tools: ReadonlySet<string>
  callsSoFar: number
}

/**
 * An offline stand-in for a language model, which says so. Its answers follow from the words of the prompt alone: `report` or `file`
 * shows thinking, a tool call that asks, and a delivered file; `ask` or `question` asks the user; anything else gets a short answer. A
 * message that carries `@@[…]@@` is a script: a JSON list of `DemoAnswer`, one for each call of the model in that turn.
 */
export function demoModel(modelId: string, { chunkDelayMs }: { chunkDelayMs: number }): Model {
  const doStream = async ({ prompt, tools, abortSignal }: CallOptions): Promise<StreamResult> => {
    const situation = readSituation(prompt, new Set(tools?.map((tool) => tool.name)))
    const answer = scripted(situation) ?? perform(situation)
    return { stream: ReadableStream.from(stream(answer, situation, prompt, chunkDelayMs, abortSignal)) as never }
  }
  return {
    specificationVersion: 'v3',
    provider: 'demo',
    modelId,
    supportedUrls: {},
    doStream,
    doGenerate: () => Promise.reject(new Error('The demonstration model streams only.')),
  }
}

const SCRIPT = /@@(\[.*?\])@@/s

function scripted({ request, step }: Situation): DemoAnswer | undefined {
  const script = SCRIPT.exec(request)?.[1]
  if (!script) return undefined
  try {
    return (JSON.parse(script) as DemoAnswer[])[step] ?? { text: 'The script has come to its end.' }
  } catch {
    return { fail: 'The script between @@ and @@ is not a JSON list.' }
  }
}

function perform(situation: Situation): DemoAnswer {
  if (/\b(report|file)\b/i.test(situation.request)) return report(situation)
  if (/\b(ask|question)\b/i.test(situation.request)) return question(situation)
  const words = situation.request.match(/\S+/g)?.length ?? 0
  return {
    thinking: 'Nothing in this message names one of the things I can show, so I will say what I am.',
    text:
      `This is the offline demonstration model of session-gateway: no language model wrote this answer. Your message had ` +
      `${words} ${words === 1 ? 'word' : 'words'}. Ask me for a report to see a file being written, or tell me to ask you a question.`,
  }
}

function report({ request, step, lastResult, tools }: Situation): DemoAnswer {
  if (step === 0) {
    const title = request.replace(/\s+/g, ' ').trim().slice(0, 200)
    const content = `# Demonstration report\n\nRequested with: ${title}\n\nThe offline demonstration model wrote this file. No language model was involved.\n`
    return {
      thinking:
        'A report is wanted. I will write it into the scratch filesystem, which needs leave, and then deliver it.',
      text: 'I am the offline demonstration model. I will write a short report to show how a file is made.',
      tools: [{ tool: 'fs_write', input: { path: 'report.md', content } }],
    }
  }
  if (lastResult?.isError) return { text: `The report stays undone. I was told: ${lastResult.text}` }
  const written = /^Wrote (.+) \(\d+ bytes\)\.$/.exec(lastResult?.text ?? '')?.[1]
  if (written && tools.has('deliver_file')) {
    const input = { path: written, description: 'A report by the demonstration model' }
    return { text: 'The file is written; now I deliver it.', tools: [{ tool: 'deliver_file', input }] }
  }
  return {
    text: `Done: ${lastResult?.text ?? 'nothing was written.'} This was a demonstration without a language model.`,
  }
}

function question({ step, lastResult }: Situation): DemoAnswer {
  if (step === 0) {
    const options = [
      { label: 'Blue', description: 'Calm' },
      { label: 'Green', description: 'Fresh' },
    ]
    return {
      thinking: 'I am to ask something, so I will ask about a colour.',
      text: 'I am the offline demonstration model, and I have one question.',
      tools: [
        {
          tool: 'AskUserQuestion',
          input: { questions: [{ question: 'Which colour do you like better?', header: 'Colour', options }] },
        },
      ],
    }
  }
  if (!lastResult || lastResult.isError) return { text: 'You gave no answer, so I leave the colour open.' }
  const { answers } = JSON.parse(lastResult.text) as { answers: Record<string, string> }
  return { text: `You chose ${Object.values(answers).join(', ')}. That is all this demonstration needed to know.` }
}

function readSituation(prompt: Prompt, tools: ReadonlySet<string>): Situation {
  const start = prompt.findLastIndex((message) => message.role === 'user')
  const asked = prompt[start]
  const since = prompt.slice(start + 1)
  const result = since.flatMap((message) => (message.role === 'tool' ? message.content : [])).at(-1)
  const calls = prompt.flatMap((message) => (message.role === 'assistant' ? message.content : []))
  return {
    request:
      asked?.role === 'user' ? asked.content.map((part) => (part.type === 'text' ? part.text : '')).join('\n') : '',
    step: since.filter((message) => message.role === 'assistant').length,
    lastResult:
      result?.type === 'tool-result'
        ? {
            tool: result.toolName,
            text: 'value' in result.output ? String(result.output.value) : '',
            isError: result.output.type === 'error-text',
          }
        : undefined,
    tools,
    callsSoFar: calls.filter((part) => part.type === 'tool-call').length,
  }
}

async function* stream(
  answer: DemoAnswer,
  { callsSoFar }: Situation,
  prompt: Prompt,
  chunkDelayMs: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<StreamPart> {
  const options = { ...(signal && { signal }) }
  const pause = () => (chunkDelayMs > 0 ? delay(chunkDelayMs, undefined, options) : nextTick(undefined, options))
  let written = 0

  yield { type: 'stream-start', warnings: [] }
  for (const [kind, words] of [['reasoning', answer.thinking] as const, ['text', answer.text] as const]) {
    if (!words) continue
    yield { type: `${kind}-start`, id: kind }
    for (const delta of words.match(/\S+\s*|\s+/g) ?? []) {
      await pause()
      written += delta.length
      yield { type: `${kind}-delta`, id: kind, delta }
    }
    yield { type: `${kind}-end`, id: kind }
  }
  if (answer.hang) await untilAborted(new Promise(() => {}), signal ?? new AbortController().signal)
  if (answer.fail) {
    yield { type: 'error', error: new Error(answer.fail) }
    return
  }
  for (const [index, { tool, input }] of (answer.tools ?? []).entries()) {
    const id = `demo_${callsSoFar + index + 1}`
    const json = JSON.stringify(input)
    yield { type: 'tool-input-start', id, toolName: tool }
    for (const delta of json.match(/.{1,24}/gsu) ?? []) {
      await pause()
      written += delta.length
      yield { type: 'tool-input-delta', id, delta }
    }
    yield { type: 'tool-input-end', id }
    yield { type: 'tool-call', toolCallId: id, toolName: tool, input: json }
  }
  yield {
    type: 'finish',
    finishReason: { unified: answer.tools?.length ? 'tool-calls' : 'stop', raw: undefined },
    usage: usageOf(JSON.stringify(prompt).length, written),
  }
}

/** Tokens as if one were four characters long. */
function usageOf(promptLength: number, answerLength: number) {
  const input = Math.ceil(promptLength / 4)
  const output = Math.ceil(answerLength / 4)
  return {
    inputTokens: { total: input, noCache: input, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: output, text: output, reasoning: 0 },
  }
}
