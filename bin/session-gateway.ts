#!/usr/bin/env node
import { CommanderError } from 'commander'
import { ConfigError } from '../src/daemon/config-problem.js'
import { StartError } from '../src/daemon/start-error.js'
import { toError } from '../src/errors.js'
import { StorageError } from '../src/storage/storage.js'
import { createProgram } from './program.js'
import { problemOf } from './terminal/exit.js'

/** What the exit code says; --help lists the same. */
const EXIT = { stopped: 0, failed: 1, usage: 2, cannotStart: 3 } as const

try {
  await createProgram().parseAsync()
} catch (thrown) {
  process.exit(report(thrown))
}

function report(thrown: unknown): number {
  // Commander has said what was wrong, or printed the help that was asked for.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? EXIT.stopped : EXIT.usage
  if (thrown instanceof ConfigError) return say(thrown.message, EXIT.usage)
  if (thrown instanceof StorageError) return say(thrown.message, EXIT.failed)
  if (thrown instanceof StartError) return say(problemOf(thrown), EXIT.cannotStart)
  const error = toError(thrown)
  const problem = problemOf(error)
  return say(problem === error.message ? (error.stack ?? String(thrown)) : problem, EXIT.failed)
}

function say(message: string, code: number): number {
  process.stderr.write(`session-gateway: ${message}\n`)
  return code
}
