import { resolve } from 'node:path'
import ts from 'typescript'
import { type Block, type Page, ROOT } from './pages.js'

/** One or more blocks of a page that make a module. */
export interface Program {
  at: string
  /** The file that it is run as. */
  name: string
  text: string
  blocks: Block[]
}

/** The programs of a page: a block that begins with an import, or has a name, begins one; the others go on with the one before. */
export function programsOf({ blocks }: Page): Program[] {
  const programs: Program[] = []
  for (const block of blocks.filter(({ lang }) => lang === 'ts')) {
    const last = programs.at(-1)
    if (last && block.name === '' && !/^(\/\/.*\n)*import /.test(block.text)) {
      last.text += `\n${block.text}`
      last.blocks.push(block)
    } else {
      const name = block.name || `${block.at.replace(/\W+/g, '-')}.ts`
      programs.push({ at: block.at, name, text: block.text, blocks: [block] })
    }
  }
  return programs
}

/** Where the compiler believes programs to be, each page's in a folder of its own. */
const PROGRAMS = resolve(ROOT, 'docs/.programs')

const OPTIONS: ts.CompilerOptions = {
  ...{ target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, types: ['node'] },
  ...{ moduleResolution: ts.ModuleResolutionKind.NodeNext, lib: ['lib.es2023.d.ts'] },
  ...{ strict: true, noUncheckedIndexedAccess: true, exactOptionalPropertyTypes: true, verbatimModuleSyntax: true },
  ...{ noEmit: true, skipLibCheck: true, typeRoots: [`${ROOT}node_modules/@types`] },
  paths: { 'session-gateway': [`${ROOT}src/index.ts`], 'session-gateway/client': [`${ROOT}client/index.ts`] },
}

/** What a strict compiler says of programs, each with the place of its block. Programs of a page see each other by their names. */
export function typeErrors(programs: readonly Program[]): string[] {
  const fileOf = ({ at, name }: Program) => resolve(PROGRAMS, at.replace(/:.*/, ''), name)
  const byFile = new Map(programs.map((program) => [fileOf(program), program]))
  const textOf = (file: string) => (byFile.has(file) ? `${byFile.get(file)!.text}\nexport {}\n` : undefined)
  const host = ts.createCompilerHost(OPTIONS)
  const { fileExists, readFile, getSourceFile, directoryExists } = host
  host.directoryExists = (folder) => folder.startsWith(PROGRAMS) || directoryExists?.(folder) !== false
  host.fileExists = (file) => byFile.has(file) || fileExists(file)
  host.readFile = (file) => textOf(file) ?? readFile(file)
  host.getSourceFile = (file, version, ...rest) => {
    const text = textOf(file)
    return text === undefined ? getSourceFile(file, version, ...rest) : ts.createSourceFile(file, text, version)
  }
  const built = ts.createProgram([...byFile.keys()], OPTIONS, host)
  return [...byFile].flatMap(([file, { at }]) => {
    const source = built.getSourceFile(file)!
    return [...built.getSyntacticDiagnostics(source), ...built.getSemanticDiagnostics(source)].map((found) => {
      const line = source.getLineAndCharacterOfPosition(found.start ?? 0).line + 1
      return `${at}, line ${line} of it: ${ts.flattenDiagnosticMessageText(found.messageText, ' ')}`
    })
  })
}
