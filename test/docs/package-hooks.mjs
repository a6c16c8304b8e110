// Programs of the documentation import the package by its name; here that is what the test has compiled.
import { register } from 'node:module'
import { pathToFileURL } from 'node:url'

const ENTRIES = { 'session-gateway': 'src/index.js', 'session-gateway/client': 'client/index.js' }

export async function resolve(specifier, context, next) {
  const entry = ENTRIES[specifier]
  return entry ? next(pathToFileURL(`${process.env.DOCS_PACKAGE}/${entry}`).href, context) : next(specifier, context)
}

if (!new URL(import.meta.url).searchParams.has('hooks')) register(`${import.meta.url}?hooks`)
