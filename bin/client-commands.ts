import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import type { PermissionMode } from '../client/index.js'
import { EXIT_HELP, guarded } from './terminal/exit.js'
import { FORMATS } from './terminal/output.js'

const CONNECTION_HELP = `
The gateway is the one of --url, SESSION_GATEWAY_URL, session-gateway login, else http://127.0.0.1:8787/v1.`

const STATUSES = ['starting', 'running', 'awaiting_approval', 'idle', 'parked', 'failed', 'closed']
const MODES = ['default', 'bypassPermissions', 'dontAsk', 'acceptEdits', 'plan', 'auto'] satisfies PermissionMode[]
const JOB_STATUSES = ['queued', 'running', 'parked', 'succeeded', 'failed', 'canceled']

/** Commands that are a client of a gateway that runs somewhere. Each is loaded when it runs. */
export function addClientCommands(program: Command): void {
  addRun(program)
  addSessions(program)
  addJobs(program)
  addApprovals(program)
  addProfiles(program)
  addOthers(program)
}

/** A command that speaks to a gateway, with what all of them have. */
function client(parent: Command, usage: string, description: string, examples: string[]): Command {
  const command = parent
    .command(usage)
    .description(description)
    .option('--url <url>', 'address of the gateway, base path included')
    .option('--token <token>', 'bearer token; SESSION_GATEWAY_TOKEN keeps it out of the list of processes')
  command.addHelpText(
    'after',
    `\nExamples:\n${examples.map((example) => `  session-gateway ${example}`).join('\n')}\n${CONNECTION_HELP}\n${EXIT_HELP}`,
  )
  return command
}

const withOutput = (command: Command): Command =>
  command.addOption(new Option('--output <format>', 'how it is printed').choices(FORMATS).default('table'))

const group = (program: Command, name: string, description: string): Command =>
  program.command(name).description(description).helpCommand(false)

const withSession = (command: Command): Command =>
  command
    .option('--profile <name>', 'who the session runs as')
    .option('--cwd <directory>', 'where it works (default: here)')
    .addOption(modeOption('permission mode'))
    .option('--model <model>', 'model')
    .option('--title <title>', 'title of the session')

/** Which of them there are the gateway knows; those that this version knows are told. */
const modeOption = (description: string): Option =>
  Object.assign(new Option('--mode <mode>', description), { argChoices: MODES })

function addRun(program: Command): void {
  withSession(
    client(program, 'run', 'start a session with a prompt and stay with it until it is done', [
      'run "Please write a report."',
      'run --json "What changed?" | jq -r .type',
      'run - < prompt.md',
      'run --detach --mode plan "Look around."',
    ]),
  )
    .argument('[prompt...]', 'what is to be done; - or nothing reads standard input')
    .option('--detach', 'print the id of the session and leave')
    .option('--json', 'print each event as a line of JSON')
    .option('--wait', 'where nobody can be asked: leave approvals to others instead of denying them')
    .option('--output-last-message <file>', 'write what was said last into a file')
    .action(
      guarded(async (words: string[], options) => {
        const { run } = await import('./commands/run.js')
        await run(words, options)
      }),
    )
}

function addSessions(program: Command): void {
  const sessions = group(program, 'sessions', 'list, watch and steer sessions')
  const load = () => import('./commands/sessions.js')
  withOutput(client(sessions, 'ls', 'list sessions, newest first', ['sessions ls --status awaiting_approval']))
    .addOption(new Option('--status <status>', 'only these').choices(STATUSES))
    .option('--profile <name>', 'only of this profile')
    .option('--limit <number>', 'at most so many', numberFrom(1))
    .action(guarded(async (options) => (await load()).list(options)))
  withOutput(client(sessions, 'show', 'tell everything about a session', ['sessions show 1f3a']))
    .argument('<id>', 'its id, or the beginning of it')
    .action(guarded(async (id: string, options) => (await load()).show(id, options)))
  client(sessions, 'attach', 'follow a session, talk to it and answer what it asks', [
    'sessions attach 1f3a',
    'sessions attach 1f3a --json --from 120',
  ])
    .argument('<id>', 'its id, or the beginning of it')
    .option('--json', 'print each event as a line of JSON')
    .option('--from <seq>', 'only what came after this event', numberFrom(0))
    .action(guarded(async (id: string, options) => (await load()).attach(id, options)))
  client(sessions, 'send', 'say something to a session', ['sessions send 1f3a "And now the tests."'])
    .argument('<id>', 'its id, or the beginning of it')
    .argument('[text...]', 'what to say; - or nothing reads standard input')
    .option('--interrupt', 'do not wait for the turn that is in progress')
    .action(guarded(async (id: string, words: string[], options) => (await load()).send(id, words, options)))
  client(sessions, 'rename', 'give a session a title, or its own back', ['sessions rename 1f3a The report'])
    .argument('<id>', 'its id, or the beginning of it')
    .argument('[title...]', 'nothing: the title that it has by itself')
    .action(guarded(async (id: string, words: string[], options) => (await load()).rename(id, words, options)))
  client(sessions, 'rm', 'end sessions and remove them', ['sessions rm 1f3a 77c2'])
    .argument('<id...>', 'their ids, or the beginnings of them')
    .action(guarded(async (ids: string[], options) => (await load()).remove(ids, options)))
  withOutput(client(sessions, 'files', 'list the files of a session', ['sessions files 1f3a']))
    .argument('<id>', 'its id, or the beginning of it')
    .action(guarded(async (id: string, options) => (await load()).files(id, options)))
  client(sessions, 'pull', 'fetch the files of a session', [
    'sessions pull 1f3a',
    'sessions pull 1f3a report.md --into out',
  ])
    .argument('<id>', 'its id, or the beginning of it')
    .argument('[path...]', 'which; nothing: all of them')
    .option('--into <directory>', 'where to (default: here)')
    .option('--force', 'write over what is there')
    .action(guarded(async (id: string, paths: string[], options) => (await load()).pull(id, paths, options)))
}

function addJobs(program: Command): void {
  const jobs = group(program, 'jobs', 'submit and watch unattended runs')
  const load = () => import('./commands/jobs.js')
  withOutput(
    withSession(
      client(jobs, 'submit', 'submit a job and print its id', [
        'jobs submit --mode dontAsk "Update the dependencies."',
        'jobs submit --wait --attempts 3 "Summarise the logs."',
      ]),
    ),
  )
    .argument('[prompt...]', 'what is to be done; - or nothing reads standard input')
    .option('--attempts <number>', 'try so often', numberFrom(1))
    .option('--max-tokens <number>', 'stop it at so many tokens', numberFrom(1))
    .option('--max-duration <seconds>', 'stop it after so long', numberFrom(1))
    .option('--priority <number>', 'higher ones run first', wholeNumber)
    .option('--webhook <url>', 'tell this address what happens')
    .option('--wait', 'wait for its end and print its result')
    .action(guarded(async (words: string[], options) => (await load()).submit(words, options)))
  withOutput(client(jobs, 'ls', 'list jobs, newest first', ['jobs ls --status running']))
    .addOption(new Option('--status <status>', 'only these').choices(JOB_STATUSES))
    .option('--limit <number>', 'at most so many', numberFrom(1))
    .action(guarded(async (options) => (await load()).list(options)))
  withOutput(client(jobs, 'show', 'tell everything about a job', ['jobs show 1f3a']))
    .argument('<id>', 'its id, or the beginning of it')
    .action(guarded(async (id: string, options) => (await load()).show(id, options)))
  withOutput(
    client(jobs, 'watch', 'follow the queue, or one job to its end', ['jobs watch', 'jobs watch 1f3a --output jsonl']),
  )
    .argument('[id]', 'its id, or the beginning of it')
    .action(guarded(async (id: string | undefined, options) => (await load()).watch(id, options)))
  client(jobs, 'cancel', 'cancel jobs', ['jobs cancel 1f3a'])
    .argument('<id...>', 'their ids, or the beginnings of them')
    .action(guarded(async (ids: string[], options) => (await load()).cancel(ids, options)))
}

function addApprovals(program: Command): void {
  const approvals = group(program, 'approvals', 'answer what sessions ask')
  const load = () => import('./commands/approvals.js')
  withOutput(client(approvals, 'ls', 'list what waits for an answer', ['approvals ls'])).action(
    guarded(async (options) => (await load()).list(options)),
  )
  client(approvals, 'allow', 'allow it, or answer its questions', [
    'approvals allow 9c1e',
    'approvals allow 9c1e --answer Blue',
  ])
    .argument('<request>', 'its id, or the beginning of it')
    .option('--answer <label...>', 'the answer to each question, in turn')
    .action(guarded(async (id: string, options) => (await load()).allow(id, options)))
  client(approvals, 'deny', 'deny it', ['approvals deny 9c1e --message "Not on a Friday."'])
    .argument('<request>', 'its id, or the beginning of it')
    .option('--message <text>', 'why')
    .option('--stop', 'end the turn, too')
    .action(guarded(async (id: string, options) => (await load()).deny(id, options)))
}

function addProfiles(program: Command): void {
  const profiles = group(program, 'profiles', 'see and manage who sessions run as')
  const load = () => import('./commands/profiles.js')
  const flags = (command: Command): Command =>
    withOutput(command)
      .argument('<name>')
      .addOption(new Option('--engine <engine>', 'what its sessions run on').choices(['cli', 'provider']))
      .option('--agent <name>', 'command-line agent')
      .option('--config-dir <directory>', 'config directory of the agent')
      .option('--provider <id>', 'model provider')
      .option('--model <model>', 'model')
      .option('--base-url <url>', 'address of the provider')
      .option('--api-key-env <name>', 'variable of the gateway that holds the key')
      .addOption(modeOption('permission mode of its sessions'))
      .option('--description <text>')
      .option('--from <file>', 'JSON with any of its fields; - reads standard input')
  withOutput(client(profiles, 'ls', 'list profiles', ['profiles ls'])).action(
    guarded(async (options) => (await load()).list(options)),
  )
  withOutput(client(profiles, 'show', 'tell everything about a profile', ['profiles show work']))
    .argument('<name>')
    .action(guarded(async (name: string, options) => (await load()).show(name, options)))
  flags(client(profiles, 'create', 'create a profile', ['profiles create demo --provider demo'])).action(
    guarded(async (name: string, options) => (await load()).create(name, options)),
  )
  flags(client(profiles, 'edit', 'change a profile', ['profiles edit demo --description "For tests" --clear defaults']))
    .option('--clear <field...>', 'fields to take out')
    .action(guarded(async (name: string, options) => (await load()).edit(name, options)))
  client(profiles, 'rm', 'delete profiles', ['profiles rm demo'])
    .argument('<name...>')
    .action(guarded(async (names: string[], options) => (await load()).remove(names, options)))
}

function addOthers(program: Command): void {
  const executions = group(program, 'executions', 'deliver results that sessions wait for')
  withOutput(
    client(executions, 'resolve', 'deliver the result of a deferred execution', [
      'executions resolve deploy-17 --text "Deployed."',
      'executions resolve deploy-17 --json \'{"version":3}\'',
      'executions resolve deploy-17 --failed "The host is down."',
    ]),
  )
    .argument('<id>')
    .option('--text <text>', 'the output; without any flag it is read from standard input')
    .option('--json <json>', 'the output as JSON; - reads standard input')
    .option('--failed <error>', 'why it failed')
    .option('--reason <word>', 'with --failed: a word for programs')
    .action(
      guarded(async (id: string, options) => {
        const { resolve } = await import('./commands/executions.js')
        await resolve(id, options)
      }),
    )
  client(program, 'open', 'print the URL of a session', ['open 1f3a'])
    .argument('<id>', 'its id, or the beginning of it')
    .action(
      guarded(async (id: string, options) => {
        const { open } = await import('./commands/sessions.js')
        await open(id, options)
      }),
    )
  client(program, 'login', 'keep the address of a gateway and a token for it', [
    'login https://gateway.example/v1',
    'login --token "$TOKEN"',
  ])
    .argument('[url]', 'address of the gateway')
    .action(
      guarded(async (url: string | undefined, options) => {
        const { login } = await import('./commands/login.js')
        await login(url, options)
      }),
    )
  program
    .command('logout')
    .description('forget what login has kept')
    .action(
      guarded(async () => {
        const { logout } = await import('./commands/login.js')
        await logout()
      }),
    )
  program
    .command('completion')
    .description('print what makes a shell complete these commands')
    .addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish']))
    .addHelpText(
      'after',
      `
Examples:
  source <(session-gateway completion bash)
  session-gateway completion zsh > "\${fpath[1]}/_session-gateway"
  session-gateway completion fish > ~/.config/fish/completions/session-gateway.fish`,
    )
    .action(
      guarded(async (shell: string) => {
        const { completion } = await import('./commands/completion.js')
        completion(shell, program)
      }),
    )
}

const numberFrom =
  (least: number) =>
  (text: string): number => {
    if (wholeNumber(text) >= least) return Number(text)
    throw new InvalidArgumentError(`Expected a number from ${least}.`)
  }

function wholeNumber(text: string): number {
  if (/^-?\d{1,15}$/.test(text)) return Number(text)
  throw new InvalidArgumentError('Expected a whole number.')
}
