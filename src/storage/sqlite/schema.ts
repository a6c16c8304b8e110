import type { Database } from './driver.js'
import { Refusal } from './failures.js'
import { inTransaction } from './transaction.js'

/** Marks a database file as one of ours: "SGW1". */
export const APPLICATION_ID = 0x53475731

/** What follows from the states of sessions and is kept beside them: how those are found that have ended, and whose executions are. */
export const FIND_BY_STATE = `
  UPDATE sessions SET
    ended = json_extract(state, '$.info.status'),
    ended_at = json_extract(state, '$.info.lastActivityAt'),
    engine = json_extract(state, '$.info.engine'),
    place = coalesce(json_extract(state, '$.order'), key)
  WHERE ended IS NULL AND CASE WHEN json_valid(state) THEN json_extract(state, '$.info.status') IN ('closed', 'failed') END;
  INSERT INTO executions (id, session)
  SELECT id, session FROM (
    SELECT e.value AS id, s.key AS session
      FROM (SELECT key, state FROM sessions WHERE json_valid(state)) AS s, json_each(s.state, '$.settled') AS e
    UNION SELECT json_extract(e.value, '$.executionId'), s.key
      FROM (SELECT key, state FROM sessions WHERE json_valid(state)) AS s, json_each(s.state, '$.executions') AS e
  ) WHERE typeof(id) = 'text' ORDER BY session ON CONFLICT DO NOTHING;
`

/** As a step that was released did it. */
const FIND_ENDED = `
  UPDATE sessions SET
    ended = json_extract(state, '$.info.status'),
    ended_at = json_extract(state, '$.info.lastActivityAt'),
    engine = json_extract(state, '$.info.engine'),
    place = coalesce(json_extract(state, '$.order'), key),
    executions = (
      SELECT json_group_array(id) FROM (
        SELECT value AS id FROM json_each(state, '$.settled')
        UNION SELECT json_extract(value, '$.executionId') FROM json_each(state, '$.executions')
      ) HAVING count(*) > 0
    )
  WHERE ended IS NULL AND CASE WHEN json_valid(state) THEN json_extract(state, '$.info.status') IN ('closed', 'failed') END;
`

/**
 * The steps from nothing to the present schema. A step that was released never changes; a database knows how many it has taken.
 *
 * Events lie in a table by rowid with an index over a short integer key: by far the cheapest layout to append to when many sessions
 * write in turn. AUTOINCREMENT keeps the number of a removed session from being given again while its events are still swept.
 */
const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    profile TEXT NOT NULL,
    generation TEXT NOT NULL,
    reserved_seq INTEGER NOT NULL,
    state TEXT NOT NULL
  );
  CREATE TABLE origins (session INTEGER PRIMARY KEY, origin TEXT NOT NULL);
  CREATE TABLE snapshots (session INTEGER PRIMARY KEY, snapshot TEXT NOT NULL);
  CREATE TABLE events (session INTEGER NOT NULL, seq INTEGER NOT NULL, json TEXT NOT NULL, UNIQUE (session, seq));
  CREATE TABLE removed_sessions (session INTEGER PRIMARY KEY);

  CREATE TABLE parked (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, record TEXT NOT NULL);

  CREATE TABLE profiles (name TEXT NOT NULL PRIMARY KEY, profile TEXT NOT NULL) WITHOUT ROWID;

  CREATE TABLE jobs (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL,
    profile TEXT NOT NULL,
    priority NUMERIC NOT NULL,
    created_at NUMERIC NOT NULL,
    next_run_at NUMERIC,
    ready INTEGER,
    finished_at NUMERIC,
    info TEXT NOT NULL,
    request TEXT NOT NULL
  );
  CREATE INDEX jobs_ready ON jobs (priority DESC, n) WHERE ready = 1;
  CREATE INDEX jobs_delayed ON jobs (next_run_at) WHERE ready = 0;
  CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;
  CREATE INDEX jobs_by_status ON jobs (status, n);
  CREATE INDEX jobs_by_profile ON jobs (profile, status, n);
  CREATE INDEX jobs_by_time ON jobs (created_at, n);
  CREATE TABLE daily_tokens (day TEXT NOT NULL PRIMARY KEY, tokens NUMERIC NOT NULL) WITHOUT ROWID;

  CREATE TABLE idempotency_keys (
    key TEXT NOT NULL PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    since NUMERIC NOT NULL,
    answer TEXT
  );
  CREATE INDEX idempotency_keys_by_time ON idempotency_keys (since);
  CREATE INDEX idempotency_keys_unanswered ON idempotency_keys (key) WHERE answer IS NULL;

  CREATE TABLE deliveries (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    lane TEXT NOT NULL,
    id TEXT NOT NULL,
    delivery TEXT NOT NULL,
    UNIQUE (lane, id)
  );
  CREATE TABLE delivery_attempts (n INTEGER PRIMARY KEY AUTOINCREMENT, lane TEXT NOT NULL, attempt TEXT NOT NULL);
  CREATE INDEX delivery_attempts_by_lane ON delivery_attempts (lane, n);
  `,
  // what the request with a key has made
  'ALTER TABLE idempotency_keys ADD COLUMN made TEXT',
  // targets of deliveries that have answered 410 Gone
  'CREATE TABLE gone_targets (n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE)',
  // the feed of notifications, and its identity
  `
  CREATE TABLE notifications (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    type TEXT NOT NULL,
    session TEXT NOT NULL,
    profile TEXT NOT NULL,
    ts NUMERIC NOT NULL,
    notification TEXT NOT NULL
  );
  CREATE INDEX notifications_by_time ON notifications (ts);
  CREATE TABLE feed (epoch TEXT NOT NULL);
  `,
  // what sessions were asked to do and have not done yet; since then `parked` has only what is still to be moved
  `CREATE TABLE news (
    n INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    key TEXT NOT NULL,
    news TEXT NOT NULL,
    UNIQUE (session, key)
  )`,
  // keys of the gateway's own, and browsers that subscribed to notifications
  `
  CREATE TABLE gateway_keys (name TEXT NOT NULL PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
  CREATE TABLE push_subscriptions (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, subscription TEXT NOT NULL);
  `,
  // browsers that are signed in to the console
  'CREATE TABLE sign_ins (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, sign_in TEXT NOT NULL)',
  // what was used, as daily sums
  `CREATE TABLE usage_sums (
    day TEXT NOT NULL,
    profile TEXT NOT NULL,
    agent TEXT NOT NULL,
    person TEXT NOT NULL,
    turns REAL NOT NULL,
    turns_succeeded REAL NOT NULL,
    turns_failed REAL NOT NULL,
    turns_interrupted REAL NOT NULL,
    input_tokens REAL NOT NULL,
    output_tokens REAL NOT NULL,
    cache_creation_tokens REAL NOT NULL,
    cache_read_tokens REAL NOT NULL,
    approvals_asked REAL NOT NULL,
    approvals_answered REAL NOT NULL,
    approvals_expired REAL NOT NULL,
    approval_waits REAL NOT NULL,
    approval_wait_ms REAL NOT NULL,
    approval_wait_max_ms REAL NOT NULL,
    jobs REAL NOT NULL,
    cost_usd REAL NOT NULL,
    PRIMARY KEY (day, profile, agent, person)
  ) WITHOUT ROWID`,
  // by which sessions that have ended are found, and those that have not
  `
  ALTER TABLE sessions ADD COLUMN ended TEXT;
  ALTER TABLE sessions ADD COLUMN ended_at NUMERIC;
  ALTER TABLE sessions ADD COLUMN engine TEXT;
  ALTER TABLE sessions ADD COLUMN place INTEGER;
  ALTER TABLE sessions ADD COLUMN executions TEXT;
  CREATE INDEX sessions_unended ON sessions (key) WHERE ended IS NULL;
  CREATE INDEX sessions_ended ON sessions (engine, ended, place) WHERE ended IS NOT NULL;
  CREATE INDEX sessions_ended_by_profile ON sessions (profile, engine, ended, place) WHERE ended IS NOT NULL;
  CREATE INDEX sessions_ended_by_time ON sessions (ended_at) WHERE ended IS NOT NULL;
  CREATE INDEX sessions_with_executions ON sessions (key) WHERE executions IS NOT NULL;
  ${FIND_ENDED}
  `,
  // rises with every change of a job
  'ALTER TABLE jobs ADD COLUMN rev INTEGER NOT NULL DEFAULT 0',
  // by which sessions are found that sleep, and those of executions
  `
  DROP INDEX sessions_unended;
  DROP INDEX sessions_with_executions;
  DROP INDEX sessions_ended_by_time;
  ALTER TABLE sessions DROP COLUMN executions;
  ALTER TABLE sessions ADD COLUMN asleep TEXT;
  ALTER TABLE sessions ADD COLUMN wakes_at NUMERIC;
  ALTER TABLE sessions ADD COLUMN sdk_session TEXT;
  CREATE INDEX sessions_awake ON sessions (key) WHERE ended IS NULL AND asleep IS NULL;
  CREATE INDEX sessions_asleep ON sessions (engine, asleep, place) WHERE asleep IS NOT NULL;
  CREATE INDEX sessions_asleep_by_profile ON sessions (profile, engine, asleep, place) WHERE asleep IS NOT NULL;
  CREATE INDEX sessions_ended_by_time ON sessions (ended_at) WHERE ended_at IS NOT NULL;
  CREATE INDEX sessions_due ON sessions (wakes_at, id) WHERE wakes_at IS NOT NULL;
  CREATE INDEX sessions_by_sdk_session ON sessions (sdk_session) WHERE sdk_session IS NOT NULL;
  CREATE TABLE executions (id TEXT NOT NULL PRIMARY KEY, session INTEGER NOT NULL) WITHOUT ROWID;
  CREATE INDEX executions_by_session ON executions (session);
  ${FIND_BY_STATE}
  `,
]

/** Tables that grow with use, for reports of their size. */
export const TABLES = [
  ...['sessions', 'origins', 'snapshots', 'events', 'removed_sessions', 'parked', 'profiles', 'jobs', 'daily_tokens'],
  ...['idempotency_keys', 'deliveries', 'delivery_attempts', 'gone_targets', 'notifications', 'feed', 'news'],
  ...['gateway_keys', 'push_subscriptions', 'sign_ins', 'usage_sums'],
  'executions',
] as const

export type Table = (typeof TABLES)[number]

export const SCHEMA_VERSION = MIGRATIONS.length

/**
 * How far the database has come; 0 for one that is empty.
 * @throws Refusal for one that is not ours, or that a newer version has written
 */
export function versionOf(db: Database, path: string, known = SCHEMA_VERSION): number {
  const { application_id: application } = db.prepare('PRAGMA application_id').get()
  const { tables } = db.prepare('SELECT count(*) AS tables FROM sqlite_master').get()
  if (tables === 0 && (application === 0 || application === APPLICATION_ID)) return 0
  if (application !== APPLICATION_ID)
    throw new Refusal(`${path} is an SQLite database of something else. It was left as it is.`, 'STORAGE_FOREIGN')
  const { version } = db.prepare('SELECT max(version) AS version FROM schema_versions').get()
  if (version > known)
    throw new Refusal(
      `${path} was written by a newer version: its schema is version ${version}, this one knows versions up to ${known}. ` +
        'Use that version again, or restore a backup from before it. The file was left as it is.',
      'STORAGE_NEWER',
    )
  return version
}

/** Takes the steps that the database has not taken yet, each whole or not at all. */
export function migrate(db: Database, path: string, steps: readonly string[] = MIGRATIONS): void {
  for (let version = versionOf(db, path, steps.length); version < steps.length; version++)
    inTransaction(db, () => {
      if (version === 0)
        db.exec(
          `PRAGMA application_id = ${APPLICATION_ID};
           CREATE TABLE schema_versions (version INTEGER PRIMARY KEY, taken_at INTEGER NOT NULL)`,
        )
      db.exec(steps[version]!)
      db.prepare('INSERT INTO schema_versions (version, taken_at) VALUES (?, ?)').run(version + 1, Date.now())
    })
}
