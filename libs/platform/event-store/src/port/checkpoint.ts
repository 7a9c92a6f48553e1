import type pg from 'pg';
import { BEGINNING, type Position } from './event-store.js';
import { formatPosition, parsePosition } from './position.js';

/** Reads where a subscription resumes: without a checkpoint, at the beginning of the log. */
export async function readCheckpoint(pool: pg.Pool, subscription: string): Promise<Position> {
  const { rows } = await pool.query<{ position: string }>(
    'select position from es.checkpoints where subscription = $1',
    [subscription],
  );
  const [row] = rows;
  return row ? parsePosition(row.position) : BEGINNING;
}

/** Reports that another process has moved the checkpoint, and so has already done what was prepared here. */
export class OvertakenError extends Error {
  constructor() {
    super('another process has moved the checkpoint');
  }
}

/**
 * Creates the SQL, over `toMoveArguments`, that moves a checkpoint and returns a row, or no row when the checkpoint has
 * moved meanwhile. A process that loses that race waits here for the winner's commit, and must then write nothing.
 * @param condition SQL for what else must be as expected
 */
export const createMoveCheckpointSql = (condition: string): string => `
  insert into es.checkpoints as c (subscription, position)
  select $1, $3
  where ($4::boolean or exists (select from es.checkpoints where subscription = $1)) and (${condition})
  on conflict (subscription) do update set position = excluded.position, updated_at = now()
  where c.position = $2
  returning 1`;

export const MOVE_CHECKPOINT = createMoveCheckpointSql('true');

/** Builds the values of $1 to $4. */
export function toMoveArguments(subscription: string, from: Position, to: Position): unknown[] {
  const isBeginning = from.commit === BEGINNING.commit && from.prepare === BEGINNING.prepare;
  return [subscription, formatPosition(from), formatPosition(to), isBeginning];
}
