import { createRequire, register, syncBuiltinESMExports } from 'node:module'
import { fileURLToPath } from 'node:url'
import workerThreads, { isMainThread } from 'node:worker_threads'

register('./hooks.mjs', import.meta.url)

// tap records each process that a test starts, for coverage that nobody asks for: that makes a daemon's start two thirds longer, and one
// that a signal should end listens for it
createRequire(import.meta.url)('process-on-spawn').removeAllListeners()
const options = process.env.NODE_OPTIONS?.replace(/"?--import=\S*processinfo\S*/, '').trim()
if (options) process.env.NODE_OPTIONS = options
else delete process.env.NODE_OPTIONS

// this kept tap's compiler away (.taprc), and would set flags of Node from here on
process.env.TAP_TYPE_STRIP_ONLY = '0'

// a thread of the storage would start with all of this once more
if (isMainThread) {
  const { compiledFile, isThread } = await import('../fixtures/compiled.ts')
  const ROOT = fileURLToPath(new URL('../../', import.meta.url))
  const { Worker } = workerThreads
  workerThreads.Worker = class extends Worker {
    constructor(file, options) {
      const path = file instanceof URL ? fileURLToPath(file).slice(ROOT.length) : ''
      if (isThread(path)) super(compiledFile(path), { ...options, execArgv: [] })
      else super(file, options)
    }
  }
  syncBuiltinESMExports()
}
