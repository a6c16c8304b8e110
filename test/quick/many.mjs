import { readdirSync } from 'node:fs'

/** What needs processes, or as many rounds as chance asks for. */
const LONG = /crash|end-to-end|races|property|conformance|egress/

/** Runs the test files of some folders in this process: loading the gateway costs more than most of them. */
export async function runFolders(folders) {
  for (const folder of folders) {
    const at = new URL(`../${folder}/`, import.meta.url)
    const files = readdirSync(at).filter((name) => name.endsWith('.test.ts') && !LONG.test(name))
    for (const name of files.sort()) await import(new URL(name, at))
  }
}
