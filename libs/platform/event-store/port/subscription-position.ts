import type pg from 'pg';
import { UnavailableError } from '#platform/kernel/errors.js';
import { findDatabaseError, SQLSTATE } from '#platform/database/sqlstate.js';
import { BEGINNING, type Position, type StoredEvent } from './event-store.js';
import { formatPosition, parsePosition } from './position.js';

/** The subscription up to which every read model is written, where that comes after the events. */
export const READ_MODELS_SUBSCRIPTION = 'read_models';

/** Reads where a subscription resumes: without a position, at the beginning of the log. */
export async function readPosition(pool: pg.Pool, subscription: string): Promise<Position> {
  const { rows } = await pool.query<{ position: string }>(
    'select position from es.positions where subscription = $1',
    [subscription],
  );
  const [row] = rows;
  return row ? parsePosition(row.position) : BEGINNING;
}

/** Reads which events of an account a subscription has postponed, in their order. */
export async function readPostponed(
  pool: pg.Pool,
  subscription: string,
  { accountId, limit }: { accountId: number; limit: number },
): Promise<Pick<StoredEvent, 'stream' | 'revision'>[]> {
  const { rows } = await pool.query<{ stream: string; revision: number }>({
    name: 'postponed_events_of_account',
    text: `select stream_id as stream, revision from es.postponed_events
           where subscription = $1 and account_id = $2 order by seq limit $3`,
    values: [subscription, accountId, limit],
  });
  return rows;
}

/** Reports that another process has moved the position, and so has already done what was prepared here. */
export class OvertakenError extends Error {
  constructor() {
    super('another process has moved the position');
  }
}

/**
 * Creates the SQL, over `toMoveArguments`, that moves a position and returns a row, or no row when the position has
 * moved meanwhile. A process that loses that race waits here for the winner's commit, and must then write nothing.
 * @param condition SQL for what else must be as expected
 */
export const createMovePositionSql = (condition: string): string => `
  insert into es.positions as p (subscription, position)
  select $1, $3
  where ($4::boolean or exists (select from es.positions where subscription = $1)) and (${condition})
  on conflict (subscription) do update set position = excluded.position, updated_at = now()
  where p.position = $2
  returning 1`;

/** Builds the values of $1 to $4. */
export function toMoveArguments(subscription: string, from: Position, to: Position): unknown[] {
  const isBeginning = from.commit === BEGINNING.commit && from.prepare === BEGINNING.prepare;
  return [subscription, formatPosition(from), formatPosition(to), isBeginning];
}

/**
 * Ends the processing of events in the transaction of what follows from them: either moves the position past them, or
 * removes one from those that were postponed. Without a row as its result, nothing else may be written.
 * @property values of $1 to $4
 */
export type Step =
  | { kind: 'log'; values: unknown[]; postponed: PostponedEvent[] }
  | { kind: 'postponed'; values: unknown[] };

/** @property failures 0: it only comes after another one of its account */
export type PostponedEvent = Pick<StoredEvent, 'stream' | 'revision'> & {
  accountId: number;
  failures: 0 | 1;
};

export function createLogStep(
  subscription: string,
  from: Position,
  to: Position,
  postponed: PostponedEvent[] = [],
): Step {
  return { kind: 'log', values: toMoveArguments(subscription, from, to), postponed };
}

/** Renders the delay after so many failures: 10 seconds at first, an hour at the longest. @param failures an SQL expression */
export const renderRetryDelay = (failures: string): string =>
  `interval '1 second' * least(10 * power(6, least(${failures}, 9) - 1), 3600)`;

const createPostponeSql = (parameter: number): string => `
  insert into es.postponed_events (subscription, account_id, stream_id, revision, failures, retry_at)
  select $1, x."accountId", x.stream, x.revision, x.failures,
    now() + case when x.failures = 0 then interval '0' else ${renderRetryDelay('x.failures')} end
  from rows from (
    jsonb_to_recordset($${parameter}::jsonb)
      as ("accountId" bigint, stream text, revision bigint, failures int)
  ) with ordinality as x
  where exists (select from moved)
  order by x.ordinality`;

/** Takes the lock of the position as well, so that the effects of all steps come one after the other. */
const createRemoveSql = (condition: string): string => `
  delete from es.postponed_events
  where subscription = $1 and account_id = $2 and seq = $3 and failures = $4 and (${condition})
    and exists (select from es.positions where subscription = $1 for update)
  returning 1`;

/**
 * Creates the common table expressions of a step, of which `moved` has a row unless the step was overtaken.
 * @param condition SQL for what else must be as expected
 * @param parameter the number of the last one, which only a step of the log has
 */
export const createStepSql = (kind: Step['kind'], condition: string, parameter: number): string =>
  kind === 'log'
    ? `moved as (${createMovePositionSql(condition)}), postponed as (${createPostponeSql(parameter)})`
    : `moved as (${createRemoveSql(condition)})`;

/** Builds the values of a step: $1 to $4, then the others, then the last parameter. */
export function toStepValues(step: Step, others: unknown[] = []): unknown[] {
  return [
    ...step.values,
    ...others,
    ...(step.kind === 'log' ? [JSON.stringify(step.postponed)] : []),
  ];
}

/** Limits how long work that holds a position's lock besides the follower of the log waits for other locks. */
const SHORT_LOCK_TIMEOUT = `set_config('lock_timeout', '1s', true)`;

/** Takes a step. @throws OvertakenError; UnavailableError when somebody holds the lock of the position */
export async function takeStep(client: pg.Pool | pg.ClientBase, step: Step): Promise<void> {
  const columns = step.kind === 'log' ? '' : SHORT_LOCK_TIMEOUT;
  const { rowCount } = await withPositionLock(() =>
    client.query({
      name: `subscription_step_${step.kind}`,
      text: `with ${createStepSql(step.kind, 'true', 5)} select ${columns} from moved`,
      values: toStepValues(step),
    }),
  );
  if (rowCount !== 1) throw new OvertakenError();
}

/** Locks a position until the end of the transaction. @throws UnavailableError when somebody else holds the lock */
export async function lockPosition(client: pg.ClientBase, subscription: string): Promise<void> {
  await withPositionLock(() =>
    client.query({
      name: 'position_lock',
      text: `select ${SHORT_LOCK_TIMEOUT} from es.positions where subscription = $1 for update`,
      values: [subscription],
    }),
  );
}

/** Tells apart that the position itself is locked, which no event is the reason for. */
async function withPositionLock<R>(takeLock: () => Promise<R>): Promise<R> {
  try {
    return await takeLock();
  } catch (cause) {
    if (findDatabaseError(cause)?.code !== SQLSTATE.lockNotAvailable) throw cause;
    throw new UnavailableError('The position is locked', { cause });
  }
}
