import { Logger } from '@nestjs/common';
import type { Pool } from 'pg';
import { getNowMs } from '#platform/kernel/clock.js';
import { getErrorMessage } from '#platform/kernel/errors.js';
import type { EventStore } from '../port/event-store.js';
import type { LogMeasures } from '../port/log-measures.js';
import { parsePosition } from '../port/position.js';

const POSITIONS = `
  select subscription, position from es.positions where subscription not like 'positions:%'`;

/** Read from the end of an index. */
const OLDEST_INTENT = `
  select extract(epoch from now() - min(created_at))::float8 as seconds from es.intents where damage is null`;

const log = new Logger('metrics');

/** Measures the log in EventStoreDB. The age of the oldest commit is needed most while EventStoreDB is away. */
export async function measureEventStoreDbLog(
  pool: Pool,
  eventStore: EventStore,
): Promise<LogMeasures> {
  const intents = await pool.query<{ seconds: number | null }>(OLDEST_INTENT);
  const lagSeconds = await measureLag(pool, eventStore).catch((error: unknown) => {
    log.warn(`the lag of subscriptions could not be read: ${getErrorMessage(error)}`);
    return new Map<string, number>();
  });
  return { lagSeconds, oldestCommitSeconds: intents.rows[0]?.seconds ?? 0 };
}

async function measureLag(pool: Pool, eventStore: EventStore): Promise<Map<string, number>> {
  const { rows } = await pool.query<{ subscription: string; position: string }>(POSITIONS);
  const lagSeconds = new Map<string, number>();
  for (const { subscription, position } of rows) {
    const [next] = await eventStore.readAll(parsePosition(position), 1);
    const waitingMs = next ? getNowMs() - Date.parse(next.meta.recordedAt) : 0;
    lagSeconds.set(subscription, waitingMs / 1_000);
  }
  return lagSeconds;
}
