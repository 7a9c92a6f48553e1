import { ConfigError } from '#platform/kernel/config-error.js';

export type SessionSettings = Readonly<Record<string, string>>;

/**
 * Settings that decide how PostgreSQL reads our statements and writes its rows. A server, a database, a role and
 * PGOPTIONS may set each of them otherwise. Operators decide durability (`synchronous_commit`) and
 * `default_transaction_read_only`, which providers set while a disk is full.
 */
export const PINNED: SessionSettings = {
  client_encoding: 'UTF8',
  datestyle: 'ISO, MDY',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  bytea_output: 'hex',
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
  array_nulls: 'on',
  transform_null_equals: 'off',
  quote_all_identifiers: 'off',
  search_path: 'public',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  log_parameter_max_length_on_error: '0',
  debug_print_plan: 'off',
};

/**
 * Settings that keep the values of our statements out of the server's log (ADR-0090). A session may set them if its
 * role is a superuser or was granted the right, which `inkpad migrate` does where it can.
 */
export const LOG_SETTINGS: SessionSettings = {
  log_parameter_max_length: '0',
  log_error_verbosity: 'terse',
};

/** Oldest supported release, as a `server_version_num`. */
const OLDEST_SERVER = 150_000;
const ENCODING = 'UTF8';

export type ServerFacts = {
  version: string;
  version_number: number;
  encoding: string;
  is_standby: boolean;
};

const FACTS = `current_setting('server_version') as version,
      current_setting('server_version_num')::int as version_number,
      current_setting('server_encoding') as encoding`;

/** Queries the facts in a statement that every release understands. */
export const FACTS_STATEMENT = `select ${FACTS}`;

/**
 * Renders the first statement of a session, which pins the settings and returns facts about the server in one round
 * trip. Not in the startup packet: PgBouncer refuses or drops what is there. Settings that a release does not know
 * are skipped, and so are those that the role may not set.
 */
export function renderOpeningStatement(settings: SessionSettings): string {
  const values = [
    ...Object.entries({ ...PINNED, ...settings }).map((setting) => [...setting, false] as const),
    ...Object.entries(LOG_SETTINGS).map((setting) => [...setting, true] as const),
  ].map(([name, value, isRestricted]) => `('${name}', '${value}', ${isRestricted})`);
  // Without backslashes, so that it means the same whatever standard_conforming_strings is.
  return `select ${FACTS},
      pg_is_in_recovery() as is_standby,
      count(set_config(name, value, false)) as pinned
    from (values ${values.join(', ')}) as wanted (name, value, is_restricted)
    where current_setting(name, true) is not null
      and (not is_restricted or has_parameter_privilege(name, 'set'))`;
}

/**
 * Checks that Inkpad supports the server and its database.
 * @throws ConfigError that says what to do
 */
export function assertUsable(facts: ServerFacts | undefined, database: string): void {
  if (!facts) throw new Error('the server said nothing about itself');
  const { version, version_number, encoding } = facts;
  if (version_number < OLDEST_SERVER) {
    throw new ConfigError(
      `The database ${database} is on PostgreSQL ${version}, but Inkpad needs PostgreSQL 15 or newer: upgrade the server, or name another one in DATABASE_URL.`,
    );
  }
  if (encoding !== ENCODING) {
    throw new ConfigError(
      `The database ${database} has the encoding ${encoding}, which does not hold every text: create one with create database … encoding 'UTF8' template template0, and name it in DATABASE_URL.`,
    );
  }
}
