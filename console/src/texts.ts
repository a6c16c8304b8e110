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

const sessions = {
  title: 'Sessions',
}

const transcript = {
  title: 'Transcript',
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

export const texts = { shell, signIn, inbox, sessions, transcript, queue, usage, profiles, settings, time }
