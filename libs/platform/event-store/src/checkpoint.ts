import type pg from 'pg';
import { BEGINNING, type Position } from './event-store.js';
import { parsePosition } from './position.js';

/** Where a subscription resumes; without a checkpoint, the beginning of the log. */
export async function checkpointOf(pool: pg.Pool, subscription: string): Promise<Position> {
  const { rows } = await pool.query<{ position: string }>(
    'select position from es.checkpoints where subscription = $1',
    [subscription],
  );
  const [row] = rows;
  return row ? parsePosition(row.position) : BEGINNING;
}
