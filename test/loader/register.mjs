import { createRequire, register } from 'node:module'

register('./hooks.mjs', import.meta.url)

// tap records each process that a test starts, for coverage that nobody asks for: that makes a daemon's start two thirds longer, and one
// that a signal should end listens for it
createRequire(import.meta.url)('process-on-spawn').removeAllListeners()
const options = process.env.NODE_OPTIONS?.replace(/"?--import=\S*processinfo\S*/, '').trim()
if (options) process.env.NODE_OPTIONS = options
else delete process.env.NODE_OPTIONS

// this kept tap's compiler away (.taprc), and would set flags of Node from here on
process.env.TAP_TYPE_STRIP_ONLY = '0'
