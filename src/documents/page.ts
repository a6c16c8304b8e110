import { escaped } from '../lib/html.js'
import { asyncApi } from './asyncapi.js'
import type { JsonSchema } from './components.js'
import { TITLE } from './openapi.js'
import type { Feature } from './operations.js'

/** Everything that the page may load comes from where it came from itself. */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Starts the renderer on the document beside the page. */
export const PAGE_SCRIPT = `SwaggerUIBundle({ url: 'openapi.json', dom_id: '#rest', deepLinking: true, validatorUrl: null })\n`

export const PAGE_STYLE = `body { margin: 0 auto; max-width: 1460px; font-family: system-ui, sans-serif }
#sockets { padding: 0 20px 40px; box-sizing: border-box }
#sockets pre { overflow: auto; padding: 12px; background: #f4f5f7; border-radius: 4px }
#sockets summary { cursor: pointer; padding: 6px 0 }
`

/** The page that shows both documents: the routes by the renderer, the sockets and their frames as they are. */
export function docsPage(prefix: string, features: ReadonlySet<Feature>): string {
  const { channels, operations, components } = asyncApi(prefix, features) as {
    channels: Record<string, { address: string; description: string }>
    operations: Record<string, { summary: string; channel: { $ref: string }; messages: { $ref: string }[] }>
    components: { messages: Record<string, JsonSchema> }
  }
  const sections = Object.entries(channels).map(([name, { address, description }]) => {
    const own = Object.values(operations).filter(({ channel }) => channel.$ref === `#/channels/${name}`)
    return `<h3><code>${escaped(address)}</code></h3><p>${escaped(description)}</p>${own
      .map(({ summary, messages }) => `<h4>${escaped(summary)}</h4>${messages.map(frame).join('')}`)
      .join('')}`
  })
  function frame({ $ref }: { $ref: string }): string {
    const name = $ref.slice($ref.lastIndexOf('/') + 1)
    const [example] = components.messages[name]!.examples as { payload: unknown }[]
    const text = JSON.stringify(example?.payload, undefined, 2)
    return `<details><summary><code>${escaped(name)}</code></summary><pre>${escaped(text)}</pre></details>`
  }
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${TITLE}</title>
<link rel="stylesheet" href="docs/swagger-ui.css">
<link rel="stylesheet" href="docs/page.css">
</head>
<body>
<div id="rest"></div>
<section id="sockets"><h2>WebSockets</h2><p>One JSON object per text message. As a document: <a href="asyncapi.json">asyncapi.json</a></p>
${sections.join('\n')}
</section>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/page.js"></script>
</body>
</html>
`
}
