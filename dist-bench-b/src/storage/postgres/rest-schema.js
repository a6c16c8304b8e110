import { isIn, takeOver } from './cluster-schema.js';
/**
 * The step to schemas that know of sessions which sleep: they are found by columns, and nobody takes them over. Versions before it write
 * on: one that wakes a session by a state of its own does not know of these columns.
 * @param raised codes of what functions raise
 * @param id the type of names
 */
export const restStep = (raised, id) => ({
    usableFrom: 3,
    sql: `
  ALTER TABLE @sessions ADD COLUMN asleep ${id}, ADD COLUMN wakes_at double precision, ADD COLUMN sdk_session ${id};
  CREATE INDEX sessions_awake ON @sessions (key) WHERE ended IS NULL AND asleep IS NULL;
  CREATE INDEX sessions_awake_of ON @sessions (owner, key) WHERE ended IS NULL AND asleep IS NULL;
  CREATE INDEX sessions_asleep ON @sessions (engine, asleep, place) WHERE asleep IS NOT NULL;
  CREATE INDEX sessions_asleep_by_profile ON @sessions (profile, engine, asleep, place) WHERE asleep IS NOT NULL;
  CREATE INDEX sessions_due ON @sessions (wakes_at, id) WHERE wakes_at IS NOT NULL;
  CREATE INDEX sessions_by_sdk_session ON @sessions (sdk_session) WHERE sdk_session IS NOT NULL;

  CREATE FUNCTION @wake_1() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.asleep := NULL;
    NEW.wakes_at := NULL;
    NEW.sdk_session := NULL;
    RETURN NEW;
  END $$;
  CREATE TRIGGER wake BEFORE UPDATE OF state ON @sessions FOR EACH ROW
    WHEN (OLD.asleep IS NOT NULL AND NEW.state IS DISTINCT FROM OLD.state) EXECUTE FUNCTION @wake_1();

  ${takeOver(2, 'ended IS NULL AND asleep IS NULL', isIn, raised.fenced)}
  `,
});
//# sourceMappingURL=rest-schema.js.map