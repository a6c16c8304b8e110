import { Worker } from 'node:worker_threads'
import { loadClaudeSdk } from './sdk.js'

/** A session of the agent's own, as its files tell. */
export interface SdkSessionInfo {
  sessionId: string
  summary: string
  lastModified: number
  createdAt?: number
  firstPrompt?: string
  gitBranch?: string
  cwd?: string
}

/** A message of a transcript. */
export interface SdkSessionMessage {
  type: 'user' | 'assistant' | 'system'
  uuid: string
  message: unknown
  parent_tool_use_id: string | null
}

/** What is done with the agent's files. */
export interface SdkFiles {
  listSessions(options: { dir?: string; limit?: number; offset?: number }): Promise<SdkSessionInfo[]>
  getSessionInfo(sessionId: string, options: { dir?: string }): Promise<SdkSessionInfo | undefined>
  deleteSession(sessionId: string, options: { dir?: string }): Promise<void>
  getSessionMessages(sessionId: string, options: { dir?: string }): Promise<SdkSessionMessage[]>
}

/** The agent's files may be many, and on a disk that is slow. */
const TIMEOUT_MS = 30_000

const SOURCE = `
const { parentPort, workerData } = require('node:worker_threads')
import(workerData.specifier)
  .then((sdk) => sdk[workerData.method](...workerData.args))
  .then((result) => parentPort.postMessage({ result }))
  .catch((error) => parentPort.postMessage({ error: String(error?.message ?? error) }))
`

/**
 * Calls a function of the SDK that works on the agent's files under an environment of its own. The SDK looks the config directory up in the environment of
 * the process, and several sessions read from several directories at once: so each call has a thread.
 * @throws GatewayError when the SDK is not installed, Error for what the call throws or when it takes longer than half a minute
 */
export async function filesWithSdk<Method extends keyof SdkFiles>(
  specifier: string,
  env: Record<string, string>,
  method: Method,
  args: Parameters<SdkFiles[Method]>,
): Promise<Awaited<ReturnType<SdkFiles[Method]>>> {
  await loadClaudeSdk(specifier)
  const worker = new Worker(SOURCE, {
    eval: true,
    env,
    // The loaders of a host that runs TypeScript are not needed for it, and cost a second.
    execArgv: [],
    workerData: { specifier: resolved(specifier), method, args },
  })
  const timer = setTimeout(() => void worker.terminate(), TIMEOUT_MS)
  try {
    return await new Promise<Awaited<ReturnType<SdkFiles[Method]>>>((done, failed) => {
      worker.once('message', ({ result, error }) => (error === undefined ? done(result) : failed(new Error(error))))
      worker.once('error', failed)
      worker.once('exit', () => failed(new Error(`The agent's files took more than ${TIMEOUT_MS} ms.`)))
    })
  } finally {
    clearTimeout(timer)
    await worker.terminate()
  }
}

/** A bare name means the package that this file would import, not one beside the working directory. */
const resolved = (specifier: string): string => import.meta.resolve(specifier)
