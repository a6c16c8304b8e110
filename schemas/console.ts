import { type Static, Type } from '@sinclair/typebox'
import { Flag, Moment, strict, Text } from './common.js'

/** What a person signs in with: the token is exchanged for a cookie, and kept nowhere that a script or a reader of the disk finds it. */
export const SignInRequest = Type.Object(
  {
    token: Type.String({ minLength: 1, maxLength: 4096, description: 'As it would stand after `Bearer`.' }),
    path: Type.Optional(
      Type.String({
        pattern: '^(/[A-Za-z0-9._~%-]+)*/?$',
        maxLength: 512,
        description:
          'Under which the browser reaches the API, where a proxy puts something before it: the cookie goes there alone. Default: the base path.',
      }),
    ),
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
  },
  { description: 'A browser that is signed in to the console.' },
)
export type SignInInfo = Static<typeof SignInInfo>

export const SignInParams = Type.Object({ id: Type.String() })

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
