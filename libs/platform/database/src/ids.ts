import { Logger } from '@nestjs/common';
import type pg from 'pg';
import { UnavailableError } from '#kernel/errors.js';
import { ask } from './connection.js';

const TRIES = 5;
const TAKEN_ONE_BY_ONE = 10_000;

/** A record of the table has this id already. Nothing was written. */
export class IdTakenError extends Error {
  constructor(
    readonly table: string,
    id: number,
  ) {
    super(`${table} ${id} exists already`);
  }
}

/**
 * Integer ids are taken before a decision, because its events contain them; a refused command leaves a gap.
 * @param table whose sequence it is, such as a row table's
 */
export async function nextId(pool: pg.Pool, table: string): Promise<number> {
  const sequence = sequenceOf(table);
  const [row] = await ask<{ id: number }>(pool, {
    name: `next_${sequence}`,
    text: `select nextval('${sequence}') as id`,
  });
  if (!row) throw new Error(`${sequence} returned no id`);
  return row.id;
}

/**
 * Creates a record under a new id. An id that is taken already means that the sequence is behind, as after a
 * failover that lost its last values: it is raised, and the next id is tried.
 * @param create throws IdTakenError for its own table or another in which it begins a record
 * @throws UnavailableError
 */
export async function withNewId<R>(
  pool: pg.Pool,
  table: string,
  create: (id: number) => Promise<R>,
): Promise<R> {
  for (let tries = 1; ; tries++) {
    const id = await nextId(pool, table);
    try {
      return await create(id);
    } catch (error) {
      if (!(error instanceof IdTakenError)) throw error;
      new Logger('ids').warn(`${error.message}: trying the next id`);
      if (tries === TRIES) throw new UnavailableError('No free id was found', { cause: error });
      await raiseSequence(pool, error.table, await greatestId(pool, error.table));
    }
  }
}

/**
 * Raises a table's sequence to an id that is in use. Never lowers it, whoever else takes ids meanwhile: it jumps to
 * shortly before the id and takes the last ids one by one. The jump would lower it only if ten thousand ids were taken
 * in that very moment.
 * @returns how far it was behind
 */
export async function raiseSequence(pool: pg.Pool, table: string, used: number): Promise<number> {
  const sequence = sequenceOf(table);
  const near = used - TAKEN_ONE_BY_ONE;
  const [jumped] = await ask<{ next: number }>(pool, {
    text: `select s.last_value + s.is_called::int as next, setval('${sequence}', $1, false)
           from ${sequence} s where s.last_value < $1`,
    values: [near],
  });
  const [row] = await ask<{ taken: number }>(pool, {
    text: `select count(t.id) as taken from (
             select nextval('${sequence}') as id
             from ${sequence} s, generate_series(s.last_value + s.is_called::int, $1::bigint)
           ) t`,
    values: [used],
  });
  return (row?.taken ?? 0) + (jumped === undefined ? 0 : near - jumped.next);
}

/** Zero for an empty table. */
export async function greatestId(pool: pg.Pool, table: string): Promise<number> {
  sequenceOf(table);
  const [row] = await ask<{ id: number | null }>(pool, {
    text: `select max(id) as id from ${table}`,
  });
  return row?.id ?? 0;
}

function sequenceOf(table: string): string {
  if (!/^[a-z_]+$/.test(table)) throw new Error(`${table} is not a table`);
  return `${table}_id`;
}
