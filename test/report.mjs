import { Transform } from 'node:stream'

const RESULT = /^( *)(not )?ok \d+(?: - (.*?))?(?: # time=([\d.]+)ms)?(?: (?:#|\{) ?(SKIP|TODO)\b ?(.*))?(?: \{)?$/i
/** What the runner says of a file as a whole; what failed inside it says more. */
const FILE_DEPTH = 0
/** One of many files in a process. */
const FILE = /^test\/.*\.test\.ts$/
const INDENT = 4
const STYLE = process.stdout.isTTY && !process.env.NO_COLOR
const colored = (code, text) => (STYLE ? `\x1b[${code}m${text}\x1b[0m` : text)

/**
 * What a test run says: a line per file as it ends, then what was skipped and why, then every failure with its difference and place, and
 * last the totals.
 */
export default class Report extends Transform {
  #rest = ''
  #files = 0
  #processes = 0
  #planned = 0
  #counts = { pass: 0, fail: 0, skip: 0, todo: 0 }
  #skipped = []
  /** By depth: the failures of the tests that are still open. */
  #failures = [[]]
  /** By depth: how many results an open test has. */
  #results = [0]
  #details
  #startedAt = performance.now()

  constructor() {
    super({ decodeStrings: false, encoding: 'utf8' })
  }

  _transform(chunk, _encoding, done) {
    const lines = (this.#rest + chunk).split('\n')
    this.#rest = lines.pop()
    for (const line of lines) this.#read(line)
    done()
  }

  _flush(done) {
    if (this.#rest) this.#read(this.#rest)
    this.#conclude()
    done()
  }

  #read(line) {
    if (this.#details) return this.#readDetails(line)
    const result = RESULT.exec(line)
    if (result) return this.#readResult(result)
    if (/^ *---$/.test(line)) this.#details = { indent: line.indexOf('-'), lines: [] }
    else if (/^1\.\.\d+$/.test(line)) this.#planned = Number(line.slice(3))
    else if (/^ *Bail out!/.test(line)) this.push(`${line}\n`)
  }

  #readDetails(line) {
    const { indent, lines } = this.#details
    if (line.trimEnd() !== `${' '.repeat(indent)}...`) return void lines.push(line.slice(indent))
    const depth = Math.floor(indent / INDENT)
    const last = this.#failures[depth]?.at(-1)
    if (last?.isOpen) last.details = lines
    this.#details = undefined
  }

  #readResult([, indent, not, name = '', ms, directive, reason]) {
    const depth = indent.length / INDENT
    const inside = this.#failures[depth + 1] ?? []
    const isLeaf = !this.#results[depth + 1]
    this.#failures[depth + 1] = []
    this.#results[depth + 1] = 0
    this.#results[depth] = (this.#results[depth] ?? 0) + 1
    this.#failures[depth] ??= []
    const siblings = this.#failures[depth]
    for (const failure of siblings) failure.isOpen = false
    const shown = name.replace(/\\(.)/g, '$1').trim()
    const kind = directive ? directive.toLowerCase() : not ? 'fail' : 'pass'
    if (isLeaf) this.#counts[kind]++
    if (kind === 'skip') this.#skipped.push(reason ? `${shown} (${reason})` : shown)
    if (kind === 'fail') {
      for (const failure of inside) siblings.push({ ...failure, path: [shown, ...failure.path], isOpen: false })
      if (inside.length === 0) siblings.push({ path: [shown], details: [], isOpen: true })
    }
    if (depth === FILE_DEPTH) this.#sayProcess(shown, kind, Number(ms ?? 0))
    else if (depth === FILE_DEPTH + 1 && FILE.test(shown)) this.#sayFile('', shown, kind, Number(ms ?? 0))
  }

  #sayProcess(name, kind, ms) {
    this.#processes++
    const place = `${this.#processes}${this.#planned ? `/${this.#planned}` : ''}`
    this.#sayFile(place, name, kind, ms)
  }

  #sayFile(place, name, kind, ms) {
    if (FILE.test(name)) this.#files++
    const word = { pass: colored(32, 'ok  '), fail: colored(31, 'FAIL') }[kind] ?? kind
    this.push(`${place.padStart(7)}  ${word}  ${name}  ${(ms / 1000).toFixed(1)} s\n`)
  }

  #conclude() {
    const { pass, fail, skip, todo } = this.#counts
    if (this.#skipped.length > 0) this.push(`\nskipped:\n${this.#skipped.map((name) => `  ${name}\n`).join('')}`)
    for (const { path, details } of this.#failures[FILE_DEPTH]) {
      this.push(`\n${colored(31, `✖ ${path.join(' > ')}`)}\n${details.map((line) => `    ${line}\n`).join('')}`)
    }
    const seconds = Math.round((performance.now() - this.#startedAt) / 1000)
    const more = `${skip ? `, skip: ${skip}` : ''}${todo ? `, todo: ${todo}` : ''}`
    this.push(`\n# ${this.#files} files in ${seconds} s\n`)
    this.push(`# { total: ${pass + fail + skip + todo}, pass: ${pass}${fail ? `, fail: ${fail}` : ''}${more} }\n`)
  }
}
