import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'
import { defineConfig, type Plugin } from 'vite'

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))
const OUT = at('../dist/console')

/** Lays `.br` and `.gz` beside what gets smaller by it, for the gateway to send as it is. */
const compressed = (): Plugin => ({
  name: 'compressed',
  apply: 'build',
  async closeBundle() {
    const entries = await readdir(OUT, { recursive: true })
    for (const file of entries.filter((name) => /\.(js|css|html|svg)$/.test(name))) {
      const content = await readFile(join(OUT, file))
      await writeFile(join(OUT, `${file}.br`), await promisify(brotliCompress)(content))
      await writeFile(join(OUT, `${file}.gz`), await promisify(gzip)(content, { level: 9 }))
    }
  },
})

export default defineConfig({
  root: at('.'),
  // works under any path prefix
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: [compressed()],
  build: {
    outDir: OUT,
    emptyOutDir: true,
    target: 'es2022',
    sourcemap: false,
    // everything is a file of its own: the page's policy allows nothing inline
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
  },
})
