import { type Static, Type } from '@sinclair/typebox'
import { Count, described, Flag, Moment, StringEnum, strict, Text } from './common.js'

const AgentState = Type.Object({
  agent: Text('Its name.'),
  found: Flag('Whether it could be started.'),
  problem: Type.Optional(Text('Why not, and what to do about it.')),
})

const WebhookState = Type.Object({
  name: Text('The option that names it.'),
  origin: Text('Where it is; the rest of a URL may be a secret.'),
  state: described(
    StringEnum('ok', 'failing', 'gone'),
    '`ok`: nothing that was sent failed · `failing`: the last attempt did · `gone`: it answered 410, nothing is sent to it any more.',
  ),
  since: Type.Optional(Moment('When it began to fail')),
  failures: Type.Optional(Count('Attempts since then.')),
  status: Type.Optional(Count('That it answered last.')),
  error: Type.Optional(Text('What went wrong last.')),
})
export type WebhookState = Static<typeof WebhookState>

/** How the gateway is, for who operates it. */
export const ConsoleStatus = Type.Object({
  version: Text('Of session-gateway.'),
  node: Text('Of Node.js.'),
  startedAt: Moment('When it was ready to serve'),
  storage: Type.Object({
    outlasts: Flag('Whether what is kept outlives the process.'),
    writable: Flag('Whether it takes what it is given.'),
  }),
  sessions: Type.Object({ live: Count('With an engine.'), parked: Count('That wait.'), ended: Count('Still listed.') }),
  agents: Type.Array(AgentState, { description: 'That sessions of the declared profiles run on.' }),
  webhooks: Type.Array(WebhookState, { description: "The operator's own; those of jobs are with their jobs." }),
  deliveries: Type.Object({
    pending: Count('That wait or are under way.'),
    delivered: Count('Since the start.'),
    failedAttempts: Count('Since the start.'),
    lost: Count('Given up since the start.'),
  }),
})

const CookiePath = Type.String({
  pattern: '^(/[A-Za-z0-9._~%-]+)*/?$',
  maxLength: 512,
  description:
    'Under which the browser reaches the API, where a proxy puts something before it: the cookie goes there alone. Default: the base path.',
})

/** What a person signs in with: the token is exchanged for a cookie, and kept nowhere that a script or a reader of the disk finds it. */
export const SignInRequest = Type.Object(
  {
    token: Type.String({ minLength: 1, maxLength: 4096, description: 'As it would stand after `Bearer`.' }),
    path: Type.Optional(CookiePath),
  },
  strict,
)
export type SignInRequest = Static<typeof SignInRequest>

export const SignInInfo = Type.Object(
  {
    id: Text('Names it to be ended; gives nobody access.'),
    createdAt: Moment('When somebody signed in'),
    lastSeenAt: Moment('When it was last used'),
    expiresAt: Moment('When it ends if it is not used any more'),
    userAgent: Type.Optional(Text('What the browser called itself.')),
    current: Type.Optional(Type.Literal(true, { description: 'The one that asks.' })),
    isOver: Type.Optional(
      Type.Literal(true, {
        description: 'It lets nobody in any more; its browser is told by web push until it is ended.',
      }),
    ),
  },
  { description: 'A browser that is signed in to the console.' },
)
export type SignInInfo = Static<typeof SignInInfo>

export const SignInParams = Type.Object({ id: Type.String() })

/** The `path` that it was made with: the cookie is taken away from there. */
export const SignOutQuery = Type.Object({ path: Type.Optional(CookiePath) }, strict)

export const ConsoleCaller = Type.Object(
  {
    name: Type.Optional(Text('What the caller is called.')),
    allowedProfiles: Type.Optional(Type.Array(Type.String(), { description: 'Absent: all.' })),
    canManageProfiles: Flag('Whether it may create, change and delete managed profiles here.'),
    isLimited: Flag('Whether there are profiles that it may not see.'),
  },
  { description: 'Who is asking, and what it may.' },
)

export const ConsoleMe = Type.Object(
  {
    required: Flag('Whether this gateway asks for credentials at all.'),
    authenticated: Flag('Whether the caller is let in as it is.'),
    caller: Type.Optional(ConsoleCaller),
    signIn: Type.Optional(SignInInfo),
    features: Type.Optional(
      Type.Object(
        {
          queue: Flag('Whether there are jobs.'),
          profileStore: Flag('Whether profiles can be managed.'),
          webPush: Flag('Whether browsers can be told.'),
        },
        { description: 'What this gateway has; told to who is let in.' },
      ),
    ),
  },
  { description: 'What the console needs to know before anything else.' },
)
export type ConsoleMe = Static<typeof ConsoleMe>
