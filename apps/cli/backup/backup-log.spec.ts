import { afterAll, describe, expect, it } from '@jest/globals';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { EventStore, StoredEvent } from '#platform/event-store/port/event-store.js';
import { formatPosition, isAfter, type Position } from '#platform/event-store/port/position.js';
import { LOG_TABLE, writeLog } from './backup-log.js';
import { Progress } from '../progress.js';
import { readSealed } from './sealed-file.js';

const folder = mkdtempSync(join(tmpdir(), 'backup-log-'));
afterAll(() => rmSync(folder, { recursive: true }));

const key = Buffer.alloc(32, 1);
const tables = [
  { name: 'es.events', columns: ['tx', 'pos', 'stream_id', 'revision', 'data', 'hash'] },
];
const at = (n: number): Position => ({ commit: BigInt(n), prepare: BigInt(n) });

function createEvent(stream: string, revision: number, n: number, note = ''): StoredEvent {
  const meta = { accountId: 7, recordedAt: '2026-01-01T00:00:00.000Z' } as StoredEvent['meta'];
  const id = `00000000-0000-0000-0000-00000000000${n}`;
  const hash = String(n).repeat(64);
  const content = { id, type: 'A', version: 1, data: { note }, meta };
  return { ...content, stream, revision, hash, position: at(n * 100) };
}

/** Writes a log of these events up to a position, and returns what was written. */
async function write(events: StoredEvent[], end: Position, positions: string[] = []) {
  const store = {
    readUntil: async (head: Position, after: Position, limit: number) =>
      events
        .filter(({ position }) => isAfter(position, after) && !isAfter(position, head))
        .slice(0, limit),
  } as Partial<EventStore> as EventStore;
  const target = mkdtempSync(join(folder, 'log-'));
  const progress = new Progress('events', 1, { write: () => undefined });
  const source = { store, end, positions };
  const written = await writeLog({ folder: target, key, tables }, source, progress);
  const sealed = readSealed(join(target, `${LOG_TABLE}.sealed`), key, LOG_TABLE);
  return { ...written, events: await text(sealed) };
}

describe('the backup of a log in another engine', () => {
  it('has the rows that PostgreSQL would copy, up to the end', async () => {
    const log = [
      createEvent('card-1', 0, 1, 'a tab\t, a \\ and a\nline'),
      createEvent('card-2', 0, 2),
      createEvent('card-1', 1, 3),
      createEvent('card-1', 2, 4),
    ];
    const { events, table, log: facts } = await write(log, at(300));
    const [one, two, three] = ['1', '2', '3'].map((n) => `\\\\x${n.repeat(64)}`);
    expect(events).toBe(
      [
        `1\t1\tcard-1\t0\t{"note":"a tab\\\\t, a \\\\\\\\ and a\\\\nline"}\t${one}\n`,
        `1\t2\tcard-2\t0\t{"note":""}\t${two}\n`,
        `1\t3\tcard-1\t1\t{"note":""}\t${three}\n`,
      ].join(''),
    );
    expect([table.name, table.rows]).toEqual(['es.events', 3]);
    expect(facts).toEqual({
      events: 3,
      last: { stream: 'card-1', revision: 1, hash: '3'.repeat(64) },
    });
  });

  it('names each position by the last event at or before it', async () => {
    const log = [createEvent('card-1', 0, 1), createEvent('card-1', 1, 2)];
    const positions = [500, 200, 199, 100, 99].map((n) => formatPosition(at(n)));
    const { positions: named } = await write(log, at(200), positions);
    expect(new Map(named.map((row) => [row.position, row.event_id]))).toEqual(
      new Map([
        [formatPosition(at(99)), null],
        [formatPosition(at(100)), log[0]?.id],
        [formatPosition(at(199)), log[0]?.id],
        [formatPosition(at(200)), log[1]?.id],
        [formatPosition(at(500)), log[1]?.id],
      ]),
    );
  });

  it('is refused when a stream has lost events', async () => {
    const log = [createEvent('card-1', 0, 1), createEvent('card-1', 2, 2)];
    await expect(write(log, at(200))).rejects.toThrow('card-1: event 1 is missing in KurrentDB');
  });

  it('is empty when there are no events', async () => {
    const { events, log } = await write([], at(0));
    expect([events, log]).toEqual(['', { events: 0, last: null }]);
  });
});
