import { type CredentialOptions, Credentials } from './credentials.js'
import { logReplaced } from './errors.js'
import { Http, type Query, readBlob } from './http.js'
import { type List, listIn, listOf, pagedList } from './list.js'
import { type WatchNotifications, watchNotifications } from './notifications.js'
import { type Fetch, type Platform, platform, type SocketConstructor } from './platform.js'
import { type WaitForJob, waitForJob, watchQueue } from './queue.js'
import { type Answer, decisionOf, Session } from './session.js'
import type * as wire from './types.js'

export interface ClientOptions extends CredentialOptions {
  /** Where the gateway's routes are, base path included: `https://gateway.example/v1`; in a page also `/v1`. */
  baseUrl: string
  /** Default: the platform's. */
  fetch?: Fetch | undefined
  /** Default: the platform's; without any (Node 20) sessions are followed over HTTP. `ws` can be given: it sends `headers` too. */
  WebSocket?: SocketConstructor | undefined
}

export interface CallOptions {
  signal?: AbortSignal | undefined
}
export interface CreateOptions extends CallOptions {
  /** The same key never makes a second one. Default: one per call, kept over its retries. */
  idempotencyKey?: string | undefined
}

/** A page's own `PushSubscription`, or what it is as JSON. */
export type BrowserSubscription =
  | { endpoint: string; toJSON(): object }
  | (Pick<wire.CreateSubscriptionRequest, 'endpoint' | 'keys' | 'expirationTime'> & { toJSON?: undefined })

export type SubscribeOptions = Pick<wire.CreateSubscriptionRequest, 'events' | 'profiles'> & CallOptions

const segment = encodeURIComponent
const withoutSignal = <T extends CallOptions>({ signal: _, ...query }: T): Query => query as Query

/** A gateway, as its callers see it: one method per operation. Each rejects with a GatewayError, or a TypeError for what cannot be sent. */
export type Client = ReturnType<typeof createClient>

export const createClient = (options: ClientOptions) => clientOn(platform, options)

/** A client on a platform of one's own, such as one with a virtual clock. */
export function clientOn(base: Platform, { baseUrl, fetch, WebSocket, ...credentials }: ClientOptions) {
  const surroundings: Platform = Object.create(base, {
    // called by itself: a browser's own refuses to be a method of anything else
    ...(fetch && { fetch: { value: (url: string, init?: RequestInit) => fetch(url, init) } }),
    ...(WebSocket && { WebSocket: { value: WebSocket } }),
  })
  const http = new Http(baseUrl, surroundings, new Credentials(credentials, WebSocket !== undefined))

  const get = <T>(path: string, has: keyof T & string, { signal }: CallOptions = {}, query?: Query) =>
    http.json<T>('GET', path, { signal, query, has })
  const getList = async <T>(path: string, { signal }: CallOptions = {}, query?: Query) =>
    listIn<T>(await http.json('GET', path, { signal, query }))
  const create = <T>(
    path: string,
    has: keyof T & string,
    body: unknown,
    { signal, idempotencyKey }: CreateOptions = {},
  ) =>
    http.json<T>('POST', path, {
      body,
      has,
      signal,
      repeatable: true,
      headers: { 'idempotency-key': idempotencyKey ?? surroundings.newId() },
    })

  return {
    /** A session to follow and to talk to. Asks nothing of the gateway yet. */
    session: (id: string) => new Session(http, id),

    sessions: {
      /** Newest first. */
      list: (query: Omit<wire.ListSessionsQuery, 'cursor'> & CallOptions = {}): List<wire.SessionInfo> =>
        listOf(http, '/sessions', withoutSignal(query), query.signal),
      create: (request: wire.CreateSessionRequest, options?: CreateOptions) =>
        create<wire.SessionInfo>('/sessions', 'id', request, options),
      get: (id: string, options?: CallOptions) => get<wire.SessionInfo>(`/sessions/${segment(id)}`, 'id', options),
      /** `null` gives it back the title that it has by itself. */
      rename: (id: string, title: string | null, { signal }: CallOptions = {}) =>
        http.json<wire.SessionInfo>('PATCH', `/sessions/${segment(id)}`, { body: { title }, signal, has: 'id' }),
      /** Closes and removes it. @returns what it was at the end */
      remove: (id: string, { signal }: CallOptions = {}) =>
        http.json<wire.SessionInfo>('DELETE', `/sessions/${segment(id)}`, { signal, has: 'id' }),
      /** What has happened so far; `session(id).attach()` goes on with what does. */
      events: (
        id: string,
        { signal, ...from }: CallOptions & { afterSeq?: number; epoch?: string; limit?: number } = {},
      ): List<wire.SessionEvent> => eventsOf(http, id, from, signal),
      /** Carries out one command over HTTP. One with an `id` is carried out once, and sent again where need be. */
      command: (id: string, command: wire.SessionCommand, { signal }: CallOptions = {}) =>
        http.json<{ ok: true }>('POST', `/sessions/${segment(id)}/commands`, {
          body: command,
          signal,
          repeatable: command.id !== undefined,
          has: 'ok',
        }),
      /** Answers an approval or a question; the first answer wins. */
      resolvePermission: (id: string, requestId: string, answer: Answer, options?: CreateOptions) =>
        create<{ resolved: true }>(
          `/sessions/${segment(id)}/permissions/${segment(requestId)}`,
          'resolved',
          decisionOf(answer),
          options,
        ),
      files: async (id: string, options?: CallOptions) =>
        (await get<{ files: wire.SessionFileInfo[] }>(`/sessions/${segment(id)}/files`, 'files', options)).files,
      /** The content of a file, to be read in whatever form the platform offers. */
      file: async (id: string, path: string, { signal }: CallOptions = {}) =>
        (
          await http.exchange(
            'GET',
            `/sessions/${segment(id)}/files/${path.split('/').map(segment).join('/')}`,
            { signal },
            readBlob,
          )
        ).body,
    },

    /** What waits for a person, in all sessions. */
    inbox: {
      /** Oldest first. */
      list: (query: Omit<wire.ListInboxQuery, 'cursor'> & CallOptions = {}): List<wire.InboxItem> =>
        listOf(http, '/inbox', withoutSignal(query), query.signal),
      count: (options?: CallOptions) => get<wire.InboxCount>('/inbox/count', 'permissions', options),
      /** Answers several at once; rejects only when none was looked at. @returns what became of each, in their order */
      answer: async (answers: { sessionId: string; requestId: string; answer: Answer }[], options?: CreateOptions) => {
        const body = {
          answers: answers.map(({ answer, ...whose }) => ({ ...whose, ...decisionOf(answer) })),
        }
        return (await create<wire.AnswerInboxResponse>('/inbox/answers', 'results', body, options)).results
      },
    },

    notifications: {
      /** After an id, oldest first; without one the newest. */
      list: (query: wire.ListNotificationsQuery & CallOptions = {}): List<wire.SessionNotification> =>
        listOf(http, '/notifications', withoutSignal(query), query.signal),
      /** What is told of all sessions, from an id on or from now on, over as many connections as it takes: none is missed, none comes twice. */
      watch: (options?: WatchNotifications) => watchNotifications(http, options),
      /** What became of telling it, by every channel. */
      deliveries: (id: string, options?: CallOptions) =>
        getList<wire.WebhookDelivery>(`/notifications/${segment(id)}/deliveries`, options),
      /** The `applicationServerKey` for `pushManager.subscribe`. */
      vapidKey: async (options?: CallOptions) =>
        (await get<wire.VapidKeyResponse>('/notifications/vapid-key', 'publicKey', options)).publicKey,
      /** Has a browser told by web push, which it is until `expiresAt`: each call begins that time anew. */
      subscribe: (subscription: BrowserSubscription, { signal, ...wanted }: SubscribeOptions = {}) =>
        http.json<wire.PushSubscriptionInfo>('POST', '/notifications/subscriptions', {
          body: { ...(subscription.toJSON?.() ?? subscription), ...wanted },
          signal,
          repeatable: true,
        }),
      /** Has a browser told no more. */
      unsubscribe: ({ endpoint }: { endpoint: string }, { signal }: CallOptions = {}) =>
        http.json<{ deleted: true }>('DELETE', '/notifications/subscriptions', { body: { endpoint }, signal }),
    },

    usage: {
      /** Tokens, cost, turns, approvals and jobs, summed by day unless `by` says otherwise. */
      get: ({ signal, ...query }: wire.UsageQuery & CallOptions = {}) =>
        get<wire.UsageReport>('/usage', 'rows', { signal }, query),
    },

    /** Directories that a session may start in, as far as one is typed. */
    directories: ({ signal, ...query }: wire.ListDirectoriesQuery & CallOptions = {}) =>
      get<wire.ListDirectoriesResponse>('/directories', 'directories', { signal }, query),

    executions: {
      /** Delivers the result of a deferred execution. `applied: false`: it had one already. */
      resolve: (id: string, result: wire.SubmitExecutionResultRequest, { signal }: CallOptions = {}) =>
        http.json<wire.SubmitExecutionResultResponse>('POST', `/executions/${segment(id)}/result`, {
          body: result,
          signal,
          repeatable: true,
          has: 'applied',
        }),
    },

    profiles: {
      list: (options?: CallOptions) => get<wire.ListProfilesResponse>('/profiles', 'profiles', options),
      get: (name: string, options?: CallOptions) =>
        get<wire.GetProfileResponse>(`/profiles/${segment(name)}`, 'profile', options),
      create: (profile: wire.CreateProfileRequest, options?: CreateOptions) =>
        create<wire.ProfileInfo>('/profiles', 'name', profile, options),
      /** `null` clears a field, an object replaces that object, what is left out stays. */
      update: (name: string, changes: wire.UpdateProfileRequest, { signal }: CallOptions = {}) =>
        http.json<wire.ProfileInfo>('PATCH', `/profiles/${segment(name)}`, { body: changes, signal, has: 'name' }),
      remove: (name: string, { signal }: CallOptions = {}) =>
        http.json<void>('DELETE', `/profiles/${segment(name)}`, { signal }),
    },

    /** Sessions that agents keep on disk, which `resume` of a create takes. */
    sdkSessions: {
      list: ({ signal, ...query }: wire.ListSdkSessionsQuery & CallOptions = {}) =>
        getList<wire.SdkSession>('/sdk-sessions', { signal }, query),
      /** Deletes what the agent itself keeps of a session, and with it all that was said. */
      remove: (sessionId: string, { signal, ...query }: wire.DeleteSdkSessionQuery & CallOptions = {}) =>
        http.json<void>('DELETE', `/sdk-sessions/${segment(sessionId)}`, { query, signal }),
    },

    jobs: {
      list: (query: Omit<wire.ListJobsQuery, 'cursor'> & CallOptions = {}): List<wire.JobInfo> =>
        listOf(http, '/jobs', withoutSignal(query), query.signal),
      submit: (request: wire.CreateJobRequest, options?: CreateOptions) =>
        create<wire.JobInfo>('/jobs', 'id', request, options),
      get: (id: string, options?: CallOptions) => get<wire.JobInfo>(`/jobs/${segment(id)}`, 'id', options),
      cancel: (id: string, { signal }: CallOptions = {}) =>
        http.json<wire.JobInfo>('DELETE', `/jobs/${segment(id)}`, { signal, repeatable: true, has: 'id' }),
      deliveries: (id: string, options?: CallOptions) =>
        getList<wire.WebhookDelivery>(`/jobs/${segment(id)}/deliveries`, options),
      /** Resolves to the job once it has ended, whatever becomes of the connection until then. */
      wait: (id: string, options?: WaitForJob) => waitForJob(http, id, options),
    },

    queue: {
      stats: (options?: CallOptions) => get<wire.QueueStats>('/queue', 'running', options),
      /** The first of the queued jobs, in the order in which they begin. */
      next: ({ signal, ...query }: wire.NextJobsQuery & CallOptions = {}) =>
        getList<wire.JobInfo>('/queue/next', { signal }, query),
      /** Jobs and counts as they change. There is no replay: list the jobs again at every `queue_attached`. */
      watch: ({ signal }: CallOptions = {}) => watchQueue(http, signal),
    },
  }
}

function eventsOf(http: Http, id: string, from: Query, signal?: AbortSignal): List<wire.SessionEvent> {
  interface Page {
    events: wire.SessionEvent[]
    nextAfterSeq: number
    lastSeq: number
    epoch: string
  }
  return pagedList(from, async (query) => {
    const { events, nextAfterSeq, lastSeq, epoch }: Page = await http.json('GET', `/sessions/${segment(id)}/events`, {
      query,
      signal,
      has: 'events',
    })
    const isFirst = query === from
    // it begins anew: as part of one list it would be told twice
    if (!isFirst && epoch !== query.epoch) throw logReplaced()
    const seen = isFirst ? -1 : Number(query.afterSeq)
    // typing that a crash took back was the last there was: from beyond the end it is replayed
    const isLast = nextAfterSeq >= lastSeq || lastSeq <= seen
    return {
      page: isFirst ? events : events.filter(({ seq }) => seq > seen),
      next: isLast ? undefined : { ...from, afterSeq: nextAfterSeq, epoch },
    }
  })
}
