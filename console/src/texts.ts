/** Everything that the console says, in English, by screen. Another language is another object of this shape. */
const shell = {
  product: 'session-gateway',
  skip: 'Skip to content',
  navigation: 'Screens',
  more: 'More',
  loading: 'Loading…',
  notFound: 'There is no such screen.',
  failedToLoad: 'This part of the console could not be loaded.',
  tryAgain: 'Try again',
  dismiss: 'Dismiss',
  close: 'Close',
  cancel: 'Cancel',
  showMore: (rest: string) => `Show more (${rest} left)`,
  showLess: 'Show less',
  hidden: (name: string) => `[${name}]`,
  opensElsewhere: (host: string) => `opens ${host}`,
  signedInAs: (name: string) => `Signed in as ${name}`,
  open: 'No sign-in: this gateway lets in everybody who reaches it.',
  signOut: 'Sign out',
  connection: {
    connecting: 'Connecting…',
    live: 'Live',
    catchingUp: 'Catching up…',
    reconnecting: (seconds: number) => (seconds > 0 ? `Reconnecting in ${seconds} s` : 'Reconnecting…'),
    offline: 'Offline. What you see is what was known.',
    caughtUp: 'Caught up, nothing missed',
    gap: 'Caught up, but some of what happened is not kept any more',
    ended: (why: string) => `No connection: ${why}`,
    since: (time: string) => `since ${time}`,
    retryNow: 'Try now',
  },
}

const signIn = {
  title: 'Sign in',
  lead: 'This gateway asks who you are.',
  token: 'Token',
  hint: 'One of the tokens of gateway.json. It is exchanged for a cookie that scripts cannot read, and forgotten.',
  submit: 'Sign in',
  refused: 'The gateway does not take this token.',
  expired: 'Your sign-in has ended. Sign in again to go on; what was shown is still here.',
}

const inbox = {
  title: 'Inbox',
}

const status = {
  starting: 'Starting',
  running: 'Running',
  awaiting_approval: 'Waits for you',
  idle: 'Idle',
  parked: 'Parked',
  failed: 'Failed',
  closed: 'Closed',
}

const modes = {
  default: 'Asks before risky steps',
  acceptEdits: 'Edits without asking',
  plan: 'Plans, writes nothing',
  auto: 'Decides by itself',
  dontAsk: 'Denies instead of asking',
  bypassPermissions: 'Never asks',
}

const sessions = {
  title: 'Sessions',
  start: 'New session',
  list: 'Sessions, newest first',
  search: 'Search',
  searchHint: 'Title, last line, directory',
  show: 'Show',
  filters: { all: 'All', waiting: 'Waiting for you', active: 'Active', over: 'Over' },
  profile: 'Profile',
  everyProfile: 'All profiles',
  empty: 'No session yet. Start one, and it shows up here.',
  noneMatch: 'None of the sessions that are loaded match.',
  loadMore: 'Load earlier sessions',
  columns: { session: 'Session', who: 'Profile', cost: 'Cost', active: 'Last active' },
  turns: (n: number) => (n === 1 ? '1 turn' : `${n} turns`),
  pending: (n: number) => (n === 1 ? '1 request' : `${n} requests`),
  rename: 'Rename',
  renameHint: 'Empty gives it back the title that it has by itself.',
  name: 'Title',
  save: 'Save',
  end: 'Close session',
  endExplain: 'It ends what it is doing, and stays listed until it is removed.',
  remove: 'Remove',
  removeExplain: 'It goes with all that is kept of it. There is no way back.',
  sure: { end: 'Close this session?', remove: 'Remove this session?' },
}

const start = {
  title: 'New session',
  fresh: 'Start',
  adopt: 'Go on with an earlier one',
  directory: 'Directory',
  directoryHint: 'Absolute, and inside what this gateway allows.',
  mode: 'Permissions',
  byProfile: 'As the profile says',
  model: 'Model',
  modelHint: 'Empty: as the profile says.',
  prompt: 'First message',
  promptHint: 'May be left out.',
  submit: 'Start session',
  find: 'Find sessions',
  noneFound: 'The agents of this gateway keep none here.',
  resume: 'Resume',
  fork: 'Fork',
  forkHint: 'Resume goes on in it; fork goes on in a copy.',
}

const transcript = {
  title: 'Transcript',
  back: 'Back to the sessions',
  log: 'What was said and done',
  user: 'You',
  assistant: 'Agent',
  begin: 'The session begins here.',
  cut: 'What came before is not kept any more.',
  toLive: 'Jump to live',
  toBegin: 'Go to the beginning',
  newer: (n: number) => (n === 1 ? '1 new' : `${n} new`),
  linkTo: (seq: number) => `Link to line ${seq}`,
  onItsWay: 'On its way…',
  thinking: 'Thinking',
  replay: 'From the earlier session that this one goes on with',
  synthetic: 'Said by the agent itself in your place',
  image: 'Image of the agent',
  more: 'Show more',
  input: 'Input',
  output: 'Output',
  noOutput: 'None yet.',
  helper: (n: number) => (n === 1 ? 'A helper: 1 line' : `A helper: ${n} lines`),
  tool: {
    running: 'running',
    awaiting_approval: 'waits for you',
    succeeded: 'done',
    failed: 'failed',
    denied: 'denied',
    abandoned: 'left undone',
  },
  execution: { running: 'handed out, waits for its result', succeeded: 'result came', failed: 'failed elsewhere' },
  turnEnds: {
    success: 'Turn over',
    error_during_execution: 'Turn failed',
    error_max_turns: 'Turn ended: too many steps',
    error_max_budget_usd: 'Turn ended: the budget is spent',
    interrupted: 'Turn interrupted',
  },
  tokens: (read: string, written: string) => `${read} tokens in, ${written} out`,
  context: (used: string, all: string) => `${used} of ${all} tokens of context`,
  contextLabel: 'Context used',
  waitsFor: 'What is waited for',
  waitsForYou: 'Waits for you',
  waitsForResult: 'Waits for a result of',
  andMore: (n: number) => `and ${n} more`,
  mode: 'Permissions',
  model: 'Model',
  find: 'Find in transcript',
  actions: 'More actions',
  copyMarkdown: 'Copy as Markdown',
  downloadMarkdown: 'Download as Markdown',
  downloadJson: 'Download as JSON',
  copied: 'Copied.',
  diff: {
    unified: 'Unified',
    split: 'Side by side',
    lines: (n: number) => `${n} lines`,
    cut: 'The change is too long to be shown whole.',
  },
  finding: {
    label: 'Find in the whole transcript',
    looking: 'Looking…',
    found: (n: number, isMore: boolean) => (n === 0 ? 'Not found' : isMore ? `The first ${n}` : `${n} found`),
  },
  composer: {
    label: 'Message',
    placeholder: 'What next?',
    whileBusy: 'Goes to the agent when its turn is over',
    send: 'Send',
    queue: 'Queue',
    interrupt: 'Interrupt',
    interruptHint: 'Escape, while nothing is written',
    over: { closed: 'This session is closed.', failed: 'This session has failed.' },
  },
}

const answer = {
  expires: 'Denied unless somebody answers:',
  input: 'Input, as JSON',
  notAnObject: 'This is not a JSON object.',
  allow: 'Allow',
  allowEdited: 'Allow with this input',
  edit: 'Edit input',
  deny: 'Deny',
  denyWithReason: 'Deny with a reason',
  denySaying: 'Deny, saying this',
  reason: 'Reason, which the agent is told',
  other: 'Another answer',
  submit: 'Answer',
  decline: 'Do not answer',
}

const queue = {
  title: 'Queue',
}

const usage = {
  title: 'Usage',
}

const profiles = {
  title: 'Profiles',
}

const settings = {
  title: 'Settings',
}

const time = {
  now: 'now',
  seconds: (n: number) => `${n} s`,
  minutes: (n: number) => `${n} min`,
  hours: (n: number) => `${n} h`,
  days: (n: number) => `${n} d`,
  ago: (span: string) => `${span} ago`,
  ahead: (span: string) => `in ${span}`,
}

export const texts = {
  shell,
  signIn,
  inbox,
  sessions,
  transcript,
  queue,
  usage,
  profiles,
  settings,
  status,
  modes,
  start,
  answer,
  time,
}
