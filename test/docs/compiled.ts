import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { ROOT } from './pages.js'

/** The package as it is built, in a folder of its own: pages run dozens of commands, and compiled ones start in a third of the time. */
export async function compilePackage(folder: string): Promise<void> {
  const sources = ['client', 'src', 'bin', 'plugins', 'schemas'].flatMap((name) =>
    readdirSync(join(ROOT, name), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => join(ROOT, name, file)),
  )
  await build({
    entryPoints: sources,
    outdir: folder,
    outbase: ROOT,
    format: 'esm',
    target: 'es2022',
    logLevel: 'error',
  })
  writeFileSync(join(folder, '.gitignore'), '*\n')
}
