import type pg from 'pg';
import { ask } from './connection.js';

/**
 * Integer ids are taken before a decision and stand in its events; a refused command leaves a gap.
 * @param table whose sequence it is, such as a row table's
 */
export async function nextId(pool: pg.Pool, table: string): Promise<number> {
  if (!/^[a-z_]+$/.test(table)) throw new Error(`${table} is no table`);
  const sequence = `${table}_id`;
  const [row] = await ask<{ id: number }>(pool, {
    name: `next_${sequence}`,
    text: `select nextval('${sequence}') as id`,
  });
  if (!row) throw new Error(`${sequence} gave no id`);
  return row.id;
}
