/**
 * Runs TypeScript from a cache of what it compiles to, by content. tap's own loader compiles every file anew in every process, which is
 * most of what a small test costs, and all that a daemon that a test starts needs to come up. It stays away (.taprc).
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = new URL('../../', import.meta.url)
const CACHE = fileURLToPath(new URL('node_modules/.cache/session-gateway-tests/', ROOT))
const { version } = createRequire(import.meta.url)('typescript/package.json')
const OPTIONS = {
  target: 'ES2022',
  module: 'ES2022',
  verbatimModuleSyntax: true,
  isolatedModules: true,
  inlineSourceMap: true,
  inlineSources: true,
}
mkdirSync(CACHE, { recursive: true })

const isOurs = (url) => url?.startsWith(ROOT.href) === true && !url.includes('/node_modules/')

export async function resolve(specifier, context, next) {
  if (/^\.{1,2}\/.*\.js$/.test(specifier) && isOurs(context.parentURL)) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL)
    if (existsSync(source)) return { url: source.href, format: 'module', shortCircuit: true }
  }
  if (specifier.startsWith('file:') && specifier.endsWith('.ts'))
    return { url: specifier, format: 'module', shortCircuit: true }
  return next(specifier, context)
}

export async function load(url, context, next) {
  if (!isOurs(url) || !url.endsWith('.ts')) return next(url, context)
  return { format: 'module', source: await compiled(fileURLToPath(url)), shortCircuit: true }
}

async function compiled(file) {
  const text = readFileSync(file, 'utf8')
  const key = createHash('sha256')
    .update(JSON.stringify([version, OPTIONS, file, text]))
    .digest('hex')
  const place = join(CACHE, `${key}.js`)
  try {
    return readFileSync(place, 'utf8')
  } catch {
    const { default: ts } = await import('typescript')
    const { target: _target, module: _module, ...options } = OPTIONS
    const compilerOptions = { ...options, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ES2022 }
    const { outputText } = ts.transpileModule(text, { compilerOptions, fileName: file })
    const draft = `${place}.${process.pid}`
    writeFileSync(draft, outputText)
    renameSync(draft, place)
    return outputText
  }
}
