/**
 * The step to schemas that keep files of agents for other nodes. Versions before it remove sessions, too: their files go with the row.
 * @param id the type of names
 */
export const carriedStep = (id) => ({
    usableFrom: 3,
    sql: `
  CREATE TABLE @carried (
    session bigint NOT NULL REFERENCES @sessions (key) ON DELETE CASCADE,
    path ${id} NOT NULL,
    at bigint NOT NULL,
    length bigint NOT NULL,
    digest ${id} NOT NULL,
    -- gzip
    bytes bytea NOT NULL,
    PRIMARY KEY (session, path, at)
  );
  ALTER TABLE @carried ALTER COLUMN bytes SET STORAGE EXTERNAL;
  `,
});
//# sourceMappingURL=carried-schema.js.map