import { Logger } from '@nestjs/common';
import type pg from 'pg';
import { UnavailableError } from '#platform/kernel/errors.js';
import { Batcher } from './batcher.js';
import { query } from './connection.js';

/** Each try goes twice as far, so that the ids of somebody else on a shared event store are passed by soon. */
const MAX_ATTEMPTS = 24;
const SINGLE_STEPS = 10_000;
const MAX_IDS = 100;
const BLOCK_SIZE = 32;

/** Reports that a record of the table has this id already, or somebody else its stream. Nothing was written. */
export class IdTakenError extends Error {
  constructor(
    readonly table: string,
    readonly id: number,
  ) {
    super(`${table} ${id} exists already`);
  }
}

/**
 * Takes the next id of a table. Ids are taken before a decision, because its events contain them; a rejected command
 * leaves a gap.
 * @param table owner of the sequence, such as a read model's
 */
export async function takeNextId(pool: pg.Pool, table: string): Promise<number> {
  const sequence = getSequence(table);
  const sequences = batchers.get(pool) ?? new Map<string, Batcher<undefined, number>>();
  batchers.set(pool, sequences);
  const batcher =
    sequences.get(sequence) ??
    new Batcher(1, MAX_IDS, async (items) => {
      const ids = await takeNextIds(pool, sequence, items.length);
      return ids.map((id) => ({ status: 'fulfilled', value: id }));
    });
  sequences.set(sequence, batcher);
  return batcher.add(undefined);
}

/** Takes ids for callers that ask at once: a query for each costs as much as the rest of a small command. */
const batchers = new WeakMap<pg.Pool, Map<string, Batcher<undefined, number>>>();

async function takeNextIds(pool: pg.Pool, sequence: string, count: number): Promise<number[]> {
  const rows = await query<{ id: number }>(pool, {
    name: `next_${sequence}`,
    text: `select nextval('${sequence}') as id from generate_series(1, $1)`,
    values: [count],
  });
  return rows.map(({ id }) => id);
}

/**
 * Takes an id of a block that this process has taken, for records whose ids need not be in the order of their creation.
 * What is left of a block is given up with each new connection: after a failover its sequence may be behind it.
 */
export async function takeIdFromBlock(pool: pg.Pool, table: string): Promise<number> {
  const sequence = getSequence(table);
  const poolBlocks = blocks.get(pool) ?? new Map<string, number[]>();
  if (!blocks.has(pool)) pool.on('connect', () => poolBlocks.clear());
  blocks.set(pool, poolBlocks);
  for (;;) {
    const id = poolBlocks.get(sequence)?.shift();
    if (id !== undefined) return id;
    poolBlocks.set(sequence, await takeNextIds(pool, sequence, BLOCK_SIZE));
  }
}

/** What is left of the blocks, by sequence. */
const blocks = new WeakMap<pg.Pool, Map<string, number[]>>();

/**
 * Creates a record under a new id. A conflict means that the sequence is behind, as after a failover that lost its
 * last values, or that somebody else uses the stream: the sequence is raised, and the next id is tried.
 * @param create throws IdTakenError for its own table or another in which it creates a record
 * @throws UnavailableError
 */
export async function withNewId<R>(
  pool: pg.Pool,
  table: string,
  create: (id: number) => Promise<R>,
): Promise<R> {
  for (let attempt = 1; ; attempt++) {
    const id = await takeNextId(pool, table);
    try {
      return await create(id);
    } catch (error) {
      if (!(error instanceof IdTakenError)) throw error;
      new Logger('ids').warn(`${error.message}: trying the next id`);
      if (attempt === MAX_ATTEMPTS)
        throw new UnavailableError('No free id was found', { cause: error });
      const steps = 2 ** (attempt - 1) - 1;
      const usedId = Math.max(await findMaxId(pool, error.table), error.id + steps);
      await raiseSequence(pool, error.table, usedId);
    }
  }
}

/**
 * Raises a table's sequence to an id that is in use. Never lowers it, even if others take ids at the same time: it
 * jumps to shortly before the id and takes the last ids one by one. The jump would lower it only if ten thousand ids
 * were taken in that very moment.
 * @returns how far it was behind
 */
export async function raiseSequence(pool: pg.Pool, table: string, usedId: number): Promise<number> {
  const sequence = getSequence(table);
  const jumpTarget = usedId - SINGLE_STEPS;
  const [jump] = await query<{ next: number }>(pool, {
    text: `select s.last_value + s.is_called::int as next, setval('${sequence}', $1, false)
           from ${sequence} s where s.last_value < $1`,
    values: [jumpTarget],
  });
  const [row] = await query<{ count: number }>(pool, {
    text: `select count(t.id) as count from (
             select nextval('${sequence}') as id
             from ${sequence} s, generate_series(s.last_value + s.is_called::int, $1::bigint)
           ) t`,
    values: [usedId],
  });
  return (row?.count ?? 0) + (jump === undefined ? 0 : jumpTarget - jump.next);
}

/** Returns the greatest id of a table, 0 if it is empty. */
export async function findMaxId(pool: pg.Pool, table: string): Promise<number> {
  getSequence(table);
  const [row] = await query<{ id: number | null }>(pool, {
    text: `select max(id) as id from ${table}`,
  });
  return row?.id ?? 0;
}

function getSequence(table: string): string {
  if (!/^[a-z_]+$/.test(table)) throw new Error(`${table} is not a table`);
  return `${table}_id`;
}
