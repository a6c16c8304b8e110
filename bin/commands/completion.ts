import type { Command } from 'commander'
import { CommandFailure, EXIT } from '../terminal/exit.js'

interface Word {
  name: string
  description: string
}

/** `values`: what it takes, of which there may be a fixed choice; undefined where it takes nothing. */
interface Flag extends Word {
  values: string[] | undefined
}

interface Node {
  path: string[]
  /** Also what an argument is one of. */
  commands: Word[]
  flags: Flag[]
  /** Whether it takes an argument of no fixed choice, which may be a file. */
  free: boolean
}

/** Every command with its subcommands and flags, as the program has them. */
function nodesOf(command: Command, path: string[] = []): Node[] {
  const commands = command.commands.map((child) => ({ name: child.name(), description: child.description() }))
  const choices = command.registeredArguments.flatMap(({ argChoices = [], description }) =>
    argChoices.map((name) => ({ name, description })),
  )
  const flags = command.options
    .filter(({ hidden }) => !hidden)
    .flatMap(({ long, description, required, argChoices = [] }) =>
      long ? [{ name: long, description, values: required ? argChoices : undefined }] : [],
    )
  const help = { name: '--help', description: 'print help', values: undefined }
  return [
    {
      path,
      commands: [...commands, ...choices],
      flags: [...flags, help],
      free: command.registeredArguments.length > 0 && choices.length === 0,
    },
    ...command.commands.flatMap((child) => nodesOf(child, [...path, child.name()])),
  ]
}

const PROGRAM = 'session-gateway'
/** Where each command is, on a line of its shell: what is no command there is an argument, or what a flag takes. */
const places = (nodes: Node[]): string[] =>
  nodes.flatMap(({ path }) => (path.length > 0 ? [`'${path.join(' ')}'`] : []))
const words = ({ commands, flags }: Node): string => [...commands, ...flags].map(({ name }) => name).join(' ')

/** The flags that take something, each with its place, in front of what is done for it; what has no choice may be a file. */
function takers(nodes: Node[], offer: (values: string[]) => string, offerFiles: string): string[] {
  const free: string[] = []
  const chosen: string[] = []
  for (const { path, flags } of nodes)
    for (const { name, values } of flags) {
      if (!values) continue
      const place = `'${[...path, name].join(' ')}'`
      if (values.length === 0) free.push(place)
      else chosen.push(`    ${place}) ${offer(values)} ;;`)
    }
  return [...chosen, `    ${free.join('|')}) ${offerFiles} ;;`]
}

function bash(nodes: Node[]): string {
  const cases = nodes.map((node) => {
    const free = node.free ? ' free=1' : ''
    return `    '${node.path.join(' ')}') words='${words(node)}'${free} ;;`
  })
  return `_session_gateway() {
  local path='' words='' word takes='' free='' current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}"
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$word" in -*) continue ;; esac
    case "\${path:+$path }$word" in
      ${places(nodes).join('|')}) path="\${path:+$path }$word" takes='' ;;
      *) takes=1 ;;
    esac
  done
  case "$path" in
${cases.join('\n')}
  esac
  case "$takes$current" in 1-*) takes='' ;; esac
  # of --flag=value the sign is a word of its own
  if [ "$current" = '=' ]; then current=''
  elif [ "$before" = '=' ]; then before="\${COMP_WORDS[COMP_CWORD-2]}"; fi
  case "\${path:+$path }$before" in
${takers(nodes, (values) => `words='${values.join(' ')}' takes=''`, 'takes=1').join('\n')}
  esac
  COMPREPLY=()
  if [ -z "$takes" ]; then COMPREPLY=($(compgen -W "$words" -- "$current")); fi
  # names of files are left to bash, which knows about spaces and directories; before version 4 it cannot be asked to
  if [ -n "$takes" ] || { [ -n "$free" ] && [ \${#COMPREPLY[@]} = 0 ]; }; then
    compopt -o default 2>/dev/null || COMPREPLY=($(compgen -f -- "$current"))
  fi
}
complete -F _session_gateway ${PROGRAM}
`
}

function zsh(nodes: Node[]): string {
  const quote = (text: string) => text.replace(/'/g, "'\\''").replace(/:/g, '\\:')
  const cases = nodes.map(({ path, commands, flags, free }) => {
    const described = [...commands, ...flags].map(({ name, description }) => `'${quote(name)}:${quote(description)}'`)
    return `    '${path.join(' ')}') choices=(${described.join(' ')})${free ? ' free=1' : ''} ;;`
  })
  return `#compdef ${PROGRAM}
_session_gateway() {
  local current_path='' word takes='' free='' before="\${words[CURRENT-1]}"
  local -a choices
  for word in \${words[2,CURRENT-1]}; do
    case "$word" in -*) continue ;; esac
    case "\${current_path:+$current_path }$word" in
      ${places(nodes).join('|')}) current_path="\${current_path:+$current_path }$word" takes='' ;;
      *) takes=1 ;;
    esac
  done
  case "$current_path" in
${cases.join('\n')}
  esac
  case "\${words[CURRENT]}" in --*=*) before="\${words[CURRENT]%%=*}"; compset -P 1 '*=' ;; esac
  case "\${current_path:+$current_path }$before" in
${takers(nodes, (values) => `compadd -- ${values.join(' ')}; return`, '_files; return').join('\n')}
  esac
  case "$takes\${words[CURRENT]}" in 1-*) takes='' ;; esac
  if [ -n "$takes" ]; then _files
  else _describe '${PROGRAM}' choices || { [ -n "$free" ] && _files; }; fi
}
if [ "\${funcstack[1]}" = "_session_gateway" ]; then _session_gateway "$@"; else compdef _session_gateway ${PROGRAM}; fi
`
}

function fish(nodes: Node[]): string {
  const quote = (text: string) => `'${text.replace(/\\/g, '\\\\').replace(/'/g, "\\'")}'`
  const takes = (values: string[] | undefined): string =>
    values === undefined ? '' : values.length === 0 ? ' -r' : ` -x -a '${values.join(' ')}'`
  const lines = nodes.flatMap(({ path, commands, flags }) => {
    const at = `-n '__session_gateway_at ${path.join(' ')}'`
    return [
      ...commands.map(({ name, description }) => `complete -c ${PROGRAM} -f ${at} -a ${name} -d ${quote(description)}`),
      ...flags.map(
        ({ name, description, values }) =>
          `complete -c ${PROGRAM} ${at} -l ${name.slice(2)} -d ${quote(description)}${takes(values)}`,
      ),
    ]
  })
  return `function __session_gateway_at
  set -l path
  for word in (commandline -opc)[2..]
    contains -- (string join -- ' ' $path $word) ${places(nodes).join(' ')}; and set -a path $word
  end
  test "$path" = "$argv"
end
${lines.join('\n')}
`
}

const SHELLS: Record<string, (nodes: Node[]) => string> = { bash, zsh, fish }

/** Prints what makes a shell complete the commands and flags of this program, and what they take of a fixed choice. */
export function completion(shell: string, program: Command): void {
  const script = SHELLS[shell]
  if (!script) throw new CommandFailure(`There is completion for ${Object.keys(SHELLS).join(', ')}.`, EXIT.usage)
  process.stdout.write(script(nodesOf(program)))
}
