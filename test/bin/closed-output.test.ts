import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { compiledPackage } from '../fixtures/compiled.js'
import { startDaemon, TOKEN } from '../fixtures/daemon-process.js'

t.test('a command whose reader has read enough ends quietly', async (t) => {
  const { url, cwd, createSession } = await startDaemon(t)
  await createSession('Hello!')
  const bin = join(compiledPackage(), 'bin/session-gateway.js')
  // `true` has gone long before there is anything to read
  const line = '"$@" | true'
  const env = { ...process.env, SESSION_GATEWAY_TOKEN: TOKEN }
  for (const words of [['sessions', 'ls', '--output', 'jsonl', '--url', url], ['check'], ['--print-config']]) {
    const { stderr } = await promisify(execFile)('/bin/sh', ['-c', line, 'sh', process.execPath, bin, ...words], {
      cwd,
      env,
    })
    t.equal(stderr, '', words.join(' '))
  }
})

const noFull = !existsSync('/dev/full') && 'there is no /dev/full'
t.test('whoever reads the notes no more, or has no room for them, gets the answer all the same', async (t) => {
  const { url, cwd } = await startDaemon(t)
  const bin = join(compiledPackage(), 'bin/session-gateway.js')
  const words = ['run', '@@[{"text":"An answer."}]@@', '--url', url]
  const env = { ...process.env, SESSION_GATEWAY_TOKEN: TOKEN }
  for (const line of ['{ "$@" 2>&1 >&3 | true; } 3>&1', ...(noFull ? [] : ['"$@" 2> /dev/full'])]) {
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', line, 'sh', process.execPath, bin, ...words], {
      cwd: join(cwd, 'work'),
      env,
    })
    t.equal(stdout, 'An answer.\n', line)
  }
})

t.test('output that cannot be written is told of in a sentence', { skip: noFull }, async (t) => {
  const { url, cwd, createSession } = await startDaemon(t)
  await createSession('Hello!')
  const bin = join(compiledPackage(), 'bin/session-gateway.js')
  const env = { ...process.env, SESSION_GATEWAY_TOKEN: TOKEN }
  for (const words of [['sessions', 'ls', '--url', url], ['check'], ['completion', 'bash']]) {
    const ended = promisify(execFile)('/bin/sh', ['-c', '"$@" > /dev/full', 'sh', process.execPath, bin, ...words], {
      cwd,
      env,
    })
    await t.rejects(
      ended,
      { code: 1, stderr: /^session-gateway: The output cannot be written: ENOSPC.*\n$/ },
      words.join(' '),
    )
  }
})
