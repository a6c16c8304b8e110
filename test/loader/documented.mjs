/**
 * Holds whatever a test sees of a gateway, in its own process or in one that it started, to the committed documents: an answer whose status
 * or shape they do not have fails the test file.
 */
import { subscribe } from 'node:diagnostics_channel'
import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isMainThread } from 'node:worker_threads'

/** Of a daemon that was compiled: no loader reads TypeScript there. */
const { SESSION_GATEWAY_COMPILED: compiled } = process.env
const holding = compiled
  ? `${compiled}/test/fixtures/documented.js`
  : new URL('../fixtures/documented.ts', import.meta.url)
const { holdAnswers, holdFrames } = await import(holding)

/** Where the processes of one test file write down what they saw. */
const VARIABLE = 'SESSION_GATEWAY_UNDOCUMENTED'
const MAX_SHOWN = 20_000

/** What was seen that no document has, once; undefined when there is nothing. */
export function undocumented() {
  const file = process.env[VARIABLE]
  if (!existsSync(file)) return undefined
  const seen = `The documents in schemas/ do not say this:\n${readFileSync(file, 'utf8').slice(0, MAX_SHOWN)}`
  rmSync(file)
  return seen
}

if (isMainThread) {
  const isFirst = process.env[VARIABLE] === undefined
  process.env[VARIABLE] ??= join(tmpdir(), `session-gateway-undocumented-${process.pid}`)
  const file = process.env[VARIABLE]
  const report = (problem) => appendFileSync(file, `${problem}\n`)
  subscribe('fastify.initialization', ({ fastify }) => holdAnswers(fastify, report))
  if (isFirst) {
    holdFrames(report)
    process.on('exit', () => {
      const seen = undocumented()
      if (!seen) return
      console.error(seen)
      process.exitCode = 1
    })
  }
}
