import type { Command } from 'commander'
import { CommandFailure, EXIT } from '../terminal/exit.js'

interface Node {
  path: string[]
  commands: { name: string; description: string }[]
  flags: { name: string; description: string }[]
}

/** Every command with its subcommands and flags, as the program has them. */
function nodesOf(command: Command, path: string[] = []): Node[] {
  const commands = command.commands.map((child) => ({ name: child.name(), description: child.description() }))
  const flags = command.options
    .filter(({ hidden }) => !hidden)
    .flatMap(({ long, description }) => (long ? [{ name: long, description }] : []))
  return [
    { path, commands, flags: [...flags, { name: '--help', description: 'print help' }] },
    ...command.commands.flatMap((child) => nodesOf(child, [...path, child.name()])),
  ]
}

const PROGRAM = 'session-gateway'
const words = ({ commands, flags }: Node): string => [...commands, ...flags].map(({ name }) => name).join(' ')

function bash(nodes: Node[]): string {
  const cases = nodes.map((node) => `    '${node.path.join(' ')}') words='${words(node)}' ;;`)
  return `_session_gateway() {
  local path='' words='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) ;; *) path="\${path:+$path }$word" ;; esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  if [ -n "$words" ]; then COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
  else COMPREPLY=($(compgen -f -- "\${COMP_WORDS[COMP_CWORD]}")); fi
}
complete -F _session_gateway ${PROGRAM}
`
}

function zsh(nodes: Node[]): string {
  const quote = (text: string) => text.replace(/'/g, "'\\''").replace(/:/g, '\\:')
  const cases = nodes.map(({ path, commands, flags }) => {
    const described = [...commands, ...flags].map(({ name, description }) => `'${quote(name)}:${quote(description)}'`)
    return `    '${path.join(' ')}') choices=(${described.join(' ')}) ;;`
  })
  return `#compdef ${PROGRAM}
_session_gateway() {
  local current_path='' word
  local -a choices
  for word in \${words[2,CURRENT-1]}; do
    case "$word" in -*) ;; *) current_path="\${current_path:+$current_path }$word" ;; esac
  done
  case "$current_path" in
${cases.join('\n')}
  esac
  if (( \${#choices} )); then _describe '${PROGRAM}' choices; else _files; fi
}
if [ "\${funcstack[1]}" = "_session_gateway" ]; then _session_gateway "$@"; else compdef _session_gateway ${PROGRAM}; fi
`
}

function fish(nodes: Node[]): string {
  const quote = (text: string) => `'${text.replace(/\\/g, '\\\\').replace(/'/g, "\\'")}'`
  const lines = nodes.flatMap(({ path, commands, flags }) => {
    const at = `-n '__session_gateway_at ${path.join(' ')}'`
    return [
      ...commands.map(({ name, description }) => `complete -c ${PROGRAM} -f ${at} -a ${name} -d ${quote(description)}`),
      ...flags.map(
        ({ name, description }) => `complete -c ${PROGRAM} ${at} -l ${name.slice(2)} -d ${quote(description)}`,
      ),
    ]
  })
  return `function __session_gateway_at
  set -l path (commandline -opc | string match -v -- '-*')
  test "$path[2..]" = "$argv"
end
${lines.join('\n')}
`
}

const SHELLS: Record<string, (nodes: Node[]) => string> = { bash, zsh, fish }

/** Prints what makes a shell complete the commands and flags of this program. */
export function completion(shell: string, program: Command): void {
  const script = SHELLS[shell]
  if (!script) throw new CommandFailure(`There is completion for ${Object.keys(SHELLS).join(', ')}.`, EXIT.usage)
  process.stdout.write(script(nodesOf(program)))
}
