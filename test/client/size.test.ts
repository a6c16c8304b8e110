import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import t from 'tap'

const LIMIT_BYTES = 12 * 1024

t.test('the client is small and needs nothing but a browser', async (t) => {
  const { outputFiles, metafile } = await build({
    entryPoints: [fileURLToPath(new URL('../../client/index.ts', import.meta.url))],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    write: false,
    metafile: true,
  })
  const bytes = gzipSync(outputFiles[0]!.contents, { level: 9 }).length
  t.ok(bytes <= LIMIT_BYTES, `${bytes} bytes of ${LIMIT_BYTES}`)
  t.strictSame(
    Object.keys(metafile.inputs).filter((file) => !/(^|\/)(client\/[\w-]+|schemas\/close-codes)\.ts$/.test(file)),
    [],
    'nothing of anybody else is in it',
  )
})
