import { Type } from '@sinclair/typebox'
import { cutAt } from '../../lib/cut-at.js'
import { tried } from '../../lib/tried.js'
import { type ScratchFiles, scratchPath } from './files.js'
import { bundledTool, failure, type ProviderTool, text } from './tool.js'

const MAX_READ_CHARACTERS = 100_000

const path = Type.String({ minLength: 1, description: 'Relative path, folders separated by /' })

const noSuchFile = (key: string) => failure(`There is no file ${key}. fs_list shows what there is.`)

/** `fs_list`, `fs_read` and `fs_write`: the tools that every session has. */
export function scratchTools(files: ScratchFiles): ProviderTool[] {
  return [
    bundledTool({
      name: 'fs_list',
      description: 'Lists the files of the scratch filesystem with their sizes in bytes.',
      input: Type.Object({}),
      asks: 'never',
      run() {
        const list = files.list()
        return text(list.map((file) => `${file.path} (${file.bytes} bytes)`).join('\n') || 'There are no files yet.')
      },
    }),
    bundledTool({
      name: 'fs_read',
      description: `Reads a text file of the scratch filesystem, at most ${MAX_READ_CHARACTERS} characters at a time.`,
      input: Type.Object({
        path,
        offset: Type.Optional(Type.Integer({ minimum: 0, description: 'Characters to skip; default 0' })),
      }),
      asks: 'never',
      run({ path, offset = 0 }) {
        const key = scratchPath(path)
        const contents = files.read(key)
        if (!contents) return noSuchFile(key)
        const decoded = tried(() => new TextDecoder('utf-8', { fatal: true }).decode(contents))
        if (decoded === undefined) return failure(`${key} is not a text file (${contents.byteLength} bytes).`)
        const piece = cutAt(decoded.slice(offset), MAX_READ_CHARACTERS)
        const end = offset + piece.length
        const more =
          end < decoded.length ? `\n[${decoded.length - end} more characters; read on with offset ${end}]` : ''
        return text(piece + more)
      },
    }),
    bundledTool({
      name: 'fs_write',
      description: 'Creates or replaces a text file of the scratch filesystem.',
      input: Type.Object({ path, content: Type.String() }),
      asks: 'unless-allowed',
      title: ({ path }) => `Write ${scratchPath(path)}`,
      check: ({ path }) => scratchPath(path),
      run({ path, content }) {
        const file = files.write(scratchPath(path), content)
        return text(`Wrote ${file.path} (${file.bytes} bytes).`)
      },
    }),
  ]
}

/** Hands a scratch file to the user. */
export const deliverFileTool = (files: ScratchFiles): ProviderTool =>
  bundledTool({
    name: 'deliver_file',
    description: 'Hands a file of the scratch filesystem to the user, who can then download it.',
    input: Type.Object({ path, description: Type.Optional(Type.String({ description: 'What the file is' })) }),
    asks: 'unless-allowed',
    title: ({ path }) => `Deliver ${scratchPath(path)}`,
    check: ({ path }) => scratchPath(path),
    run({ path, description }, { emit }) {
      const key = scratchPath(path)
      const file = files.list().find((candidate) => candidate.path === key)
      if (!file) return noSuchFile(key)
      emit({ type: 'file_delivered', path: key, bytes: file.bytes, ...(description && { description }) })
      return text(`Delivered ${key} (${file.bytes} bytes).`)
    },
  })
