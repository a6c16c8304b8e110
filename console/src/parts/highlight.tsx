import { createLowlight } from 'lowlight'
import type { ComponentChildren } from 'preact'

type Grammar = Parameters<ReturnType<typeof createLowlight>['register']>[1]
const GRAMMARS: Record<string, () => Promise<{ default: Grammar }>> = {
  bash: () => import('highlight.js/lib/languages/bash'),
  c: () => import('highlight.js/lib/languages/c'),
  cpp: () => import('highlight.js/lib/languages/cpp'),
  csharp: () => import('highlight.js/lib/languages/csharp'),
  css: () => import('highlight.js/lib/languages/css'),
  diff: () => import('highlight.js/lib/languages/diff'),
  go: () => import('highlight.js/lib/languages/go'),
  java: () => import('highlight.js/lib/languages/java'),
  javascript: () => import('highlight.js/lib/languages/javascript'),
  json: () => import('highlight.js/lib/languages/json'),
  kotlin: () => import('highlight.js/lib/languages/kotlin'),
  markdown: () => import('highlight.js/lib/languages/markdown'),
  php: () => import('highlight.js/lib/languages/php'),
  python: () => import('highlight.js/lib/languages/python'),
  ruby: () => import('highlight.js/lib/languages/ruby'),
  rust: () => import('highlight.js/lib/languages/rust'),
  sql: () => import('highlight.js/lib/languages/sql'),
  swift: () => import('highlight.js/lib/languages/swift'),
  typescript: () => import('highlight.js/lib/languages/typescript'),
  xml: () => import('highlight.js/lib/languages/xml'),
  yaml: () => import('highlight.js/lib/languages/yaml'),
}
const ALIASES: Record<string, string> = {
  'c#': 'csharp',
  'c++': 'cpp',
  cs: 'csharp',
  html: 'xml',
  js: 'javascript',
  jsonc: 'json',
  jsx: 'javascript',
  kt: 'kotlin',
  md: 'markdown',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  sh: 'bash',
  shell: 'bash',
  svg: 'xml',
  ts: 'typescript',
  tsx: 'typescript',
  yml: 'yaml',
  zsh: 'bash',
}

const lowlight = createLowlight()
type Node = ReturnType<typeof lowlight.highlight>['children'][number]

/** Coloured code, as elements. Grammars are loaded when they are needed first. @returns undefined for a language without one */
export async function highlighted(text: string, language: string): Promise<ComponentChildren | undefined> {
  const name = ALIASES[language] ?? language
  if (!Object.hasOwn(GRAMMARS, name)) return undefined
  if (!lowlight.registered(name)) lowlight.register(name, (await GRAMMARS[name]!()).default)
  return elements(lowlight.highlight(name, text).children)
}

const elements = (nodes: readonly Node[]): ComponentChildren =>
  nodes.map((node) => {
    if (node.type === 'text') return node.value
    if (node.type !== 'element') return null
    const names = (node.properties.className as string[] | undefined)?.join(' ')
    return <span class={names}>{elements(node.children as Node[])}</span>
  })
