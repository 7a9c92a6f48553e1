import type pg from 'pg';
import { LOG_SETTINGS } from './session.js';

/** A setting of the server that lets it write values of our statements to its log, and what it has to be instead. */
export type LogSetting = { name: string; value: string; expected: string };

type ServerSettings = Readonly<Record<string, string | undefined>>;

/** Settings by any of which the server logs statements that succeed, with the value that logs none. */
const STATEMENTS_LOGGED: Readonly<Record<string, readonly string[]>> = {
  log_statement: ['none', 'ddl'],
  log_min_duration_statement: ['-1'],
  log_min_duration_sample: ['-1'],
  log_transaction_sample_rate: ['0'],
};

/** Settings of extensions: a plan shows the values that it was made for, and an audit the parameters. */
const EXTENSIONS: Readonly<Record<string, string>> = {
  'auto_explain.log_min_duration': '-1',
  'pgaudit.log_parameter': 'off',
};

/**
 * Reads with which settings the server writes values of our statements to its log, as a session of this pool sees
 * them.
 */
export async function findUnsafeLogSettings(pool: pg.Pool): Promise<LogSetting[]> {
  const names = [LOG_SETTINGS, STATEMENTS_LOGGED, EXTENSIONS].flatMap(Object.keys);
  const { rows } = await pool.query<{ name: string; setting: string }>(
    'select name, setting from pg_settings where name = any ($1)',
    [names],
  );
  return findUnsafe(Object.fromEntries(rows.map(({ name, setting }) => [name, setting])));
}

/** @param settings those that the server has, as in `pg_settings` */
export function findUnsafe(settings: ServerSettings): LogSetting[] {
  const logsStatements = Object.entries(STATEMENTS_LOGGED).some(
    ([name, silent]) => settings[name] !== undefined && !silent.includes(settings[name]),
  );
  const { log_parameter_max_length: noParameters = '', ...always } = LOG_SETTINGS;
  const safeValues = {
    ...always,
    ...(logsStatements && { log_parameter_max_length: noParameters }),
    ...EXTENSIONS,
  };
  return Object.entries(safeValues).flatMap(([name, safe]) => {
    const value = settings[name];
    return value === undefined || value === safe ? [] : [{ name, value, expected: safe }];
  });
}
