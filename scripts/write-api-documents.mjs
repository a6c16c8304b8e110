import { writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import fastify from 'fastify'

/** The documents of a gateway that has everything, as they are committed: a change in them is a change of the wire. */
export async function apiDocuments({ gatewayPlugin, createMemoryProfileStore }) {
  const host = fastify()
  await host.register(gatewayPlugin, {
    allowUnauthenticated: true,
    profiles: [],
    queue: {},
    health: true,
    metrics: true,
    profileStore: createMemoryProfileStore(),
    notifications: { channels: [{ format: 'web_push', subject: 'mailto:ops@example.com' }] },
  })
  const texts = {}
  for (const file of ['openapi.json', 'asyncapi.json'])
    texts[file] = `${JSON.stringify((await host.inject(`/v1/${file}`)).json(), undefined, 2)}\n`
  await host.close()
  return texts
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const built = await import('../dist/src/index.js')
  for (const [file, text] of Object.entries(await apiDocuments(built)))
    await writeFile(new URL(`../schemas/${file}`, import.meta.url), text)
}
