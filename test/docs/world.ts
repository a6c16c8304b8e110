import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'esbuild'
import type { Test } from 'tap'
import { runDaemon } from '../fixtures/daemon-process.js'
import { ROOT } from './pages.js'

const HERE = dirname(fileURLToPath(import.meta.url))
const LOADERS = ['../loader/leash.mjs', 'package-hooks.mjs'].map((path) => `--import=${new URL(path, import.meta.url)}`)
const TOKEN = /sgw_[\w-]{20,}/

const listening = async (server: Server, t: Test) => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

/**
 * The machine of somebody who follows a page: an empty folder, one shell for all of its commands, and the port that the page names.
 *
 * What differs from the page, and nothing else does:
 * - `npx session-gateway` is this checkout's command (npx.sh). What would serve until it is stopped is started beside the shell.
 * - `127.0.0.1:8787`, wherever it is written, is a port of this test, and so is the default of commands that name no gateway. It leads to the
 *   gateway that was started last.
 * - after `session-gateway init`, `TOKEN` is exported with the token that it printed, as it asks for.
 * - `port: 3000`, the port of a host service, is `port: 0`.
 * - home and configuration directories are empty ones.
 */
export async function readersWorld(t: Test, packageFolder: string) {
  const folder = t.testdir({ home: {}, bin: {}, project: {} })
  const project = join(folder, 'project')
  writeFileSync(join(folder, 'bin/npx'), `#!/bin/sh\n. '${join(HERE, 'npx.sh')}'\n`)
  writeFileSync(join(folder, 'bin/npm'), '#!/bin/sh\necho "npm is not what a page may run" >&2\nexit 1\n')
  for (const name of ['npx', 'npm']) chmodSync(join(folder, 'bin', name), 0o755)

  let target = 0
  let token = ''
  const forwarder = createServer((client) => {
    const upstream = connect(target, '127.0.0.1')
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      one.on('error', () => other.destroy())
      one.on('close', () => other.destroy())
      one.pipe(other)
    }
  })
  const port = await listening(forwarder, t)
  const substituted = (text: string) =>
    text.replaceAll('127.0.0.1:8787', `127.0.0.1:${port}`).replaceAll('port: 3000', 'port: 0')

  const daemons: ChildProcess[] = []
  /** Starts what `npx session-gateway …args` would serve; a gateway that still runs is stopped as an operator would. */
  const serve = async (args: string[], cwd: string, env: NodeJS.ProcessEnv = environment()) => {
    for (const child of daemons.splice(0)) {
      child.kill('SIGTERM')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    }
    const daemon = runDaemon(t, [...args, '--port', '0'], { cwd, env })
    daemons.push(daemon.child)
    await daemon.printed(/listen(ing|s on).*127\.0\.0\.1:\d+/)
    target = Number(/127\.0\.0\.1:(\d+)/.exec(daemon.stdout)![1])
  }
  const control = createHttpServer(async (request, response) => {
    let body = ''
    for await (const chunk of request.setEncoding('utf8')) body += chunk
    const { args, cwd, env } = JSON.parse(body)
    await serve(args, cwd, env).then(
      () => response.end(),
      (error) => response.writeHead(500).end(String(error)),
    )
  })
  const controlPort = await listening(control, t)

  const environment = (): NodeJS.ProcessEnv => ({
    PATH: `${join(folder, 'bin')}:${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: join(folder, 'home'),
    LANG: 'C.UTF-8',
    NO_COLOR: '1',
    npm_command: '',
    NODE_NO_WARNINGS: '1',
    SESSION_GATEWAY_URL: `http://127.0.0.1:${port}/v1`,
    DOCS_PACKAGE: packageFolder,
    DOCS_HERE: HERE,
    DOCS_BIN: join(ROOT, 'node_modules/.bin'),
    DOCS_SERVE: `http://127.0.0.1:${controlPort}`,
  })

  const shell = spawn('bash', ['--noprofile', '--norc', '-eu'], {
    cwd: project,
    env: environment(),
    stdio: ['pipe', 'pipe', 'inherit'],
    // leads a group: what follows a session in the background ends with the page
    detached: true,
  })
  t.teardown(() => {
    try {
      process.kill(-shell.pid!, 'SIGKILL')
    } catch {
      // nothing is left of it
    }
  })
  let said = ''
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  shell.stdin.on('error', () => {})

  const write = (name: string, text: string) => {
    mkdirSync(dirname(join(project, name)), { recursive: true })
    writeFileSync(join(project, name), `${substituted(text)}\n`, { mode: 0o600 })
  }
  let count = 0
  /** Runs a block in the shell of the page. @returns how it ended, and what it said on both outputs */
  const run = async (text: string): Promise<{ ended: 'well' | 'badly'; output: string }> => {
    const file = join(folder, `block-${++count}.sh`)
    writeFileSync(file, `${substituted(text)}\n`)
    said = ''
    shell.stdin.write(`. '${file}' </dev/null 2>&1\nprintf '\\036'\n`)
    let look = () => {}
    await new Promise<void>((resolve) => {
      look = () => {
        if (said.includes('\u001e') || (shell.exitCode ?? shell.signalCode) !== null) resolve()
      }
      shell.stdout.on('data', look)
      shell.on('close', look)
      look()
    })
    shell.stdout.off('data', look)
    shell.off('close', look)
    const ended = said.endsWith('\u001e') ? 'well' : 'badly'
    const output = said.replaceAll('\u001e', '')
    const shown = TOKEN.exec(output)?.[0]
    if (shown) {
      token = shown
      shell.stdin.write(`export TOKEN=${token}\n`)
    }
    return { ended, output }
  }

  /** A program without its types, as a module. */
  const writeProgram = (name: string, text: string): string => {
    const module = name.replace(/\.ts$/, '.js')
    write(module, transformSync(text, { loader: 'ts', format: 'esm', target: 'es2022' }).code)
    return join(project, module)
  }
  /** Runs a program of the page in its shell. */
  const execute = (name: string, text: string) => {
    const words = [process.execPath, ...LOADERS, writeProgram(name, text)].map((word) => `'${word}'`)
    return run(words.join(' '))
  }
  /** Runs a program of the page that serves until it is stopped, asks it over HTTP, and stops it. */
  const executeService = async (name: string, text: string, ask: (url: string) => Promise<unknown>) => {
    const child = spawn(process.execPath, [...LOADERS, writeProgram(name, text)], {
      cwd: project,
      env: { ...environment(), TOKEN: token },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    t.teardown(() => child.kill('SIGKILL'))
    const ended = once(child, 'close')
    let output = ''
    const url = new Promise<string>((resolve) => {
      for (const stream of [child.stdout!, child.stderr!])
        stream.setEncoding('utf8').on('data', (chunk: string) => {
          output += chunk
          const found = /http:\/\/127\.0\.0\.1:\d+/.exec(output)?.[0]
          if (found) resolve(found)
        })
    })
    const early = ended.then(([code]) => Promise.reject(new Error(`${name} ended with ${code}: ${output}`)))
    await ask(await Promise.race([url, early]))
    early.catch(() => {})
    child.kill('SIGTERM')
    await ended
  }
  return { project, run, write, serve, execute, executeService }
}
