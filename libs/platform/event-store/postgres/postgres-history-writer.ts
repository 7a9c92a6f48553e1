import type { Pool } from 'pg';
import { withConnection } from '#platform/database/connection.js';
import type { Head, StoredEvent } from '../port/event-store.js';
import type { HistoryWriter } from '../port/history-writer.js';
import { toCommitError } from '../port/commit-errors.js';

/** Copies a history to PostgreSQL. One statement writes a whole batch, whatever streams its events are of. */
export class PostgresHistoryWriter implements HistoryWriter {
  constructor(private readonly pool: Pool) {}

  async append(events: StoredEvent[], before: Map<string, Head | null>): Promise<void> {
    const heads = [...new Set(events.map(({ stream }) => stream))].map((stream) => {
      const head = before.get(stream);
      return { s: stream, x: head?.revision ?? -1, p: head?.hash ?? null };
    });
    const list = events.map(({ stream, revision, id, type, version, data, meta, hash }) => ({
      s: stream,
      r: revision,
      id,
      t: type,
      v: version,
      a: meta.accountId,
      d: data,
      m: meta,
      h: hash,
      at: meta.recordedAt,
    }));
    try {
      await withConnection(this.pool, (client) =>
        client.query({
          name: 'es_copy',
          text: `select es.commit($1, $2, '{}', '[]', null, null, true, null)`,
          values: [JSON.stringify(heads), JSON.stringify(list)],
        }),
      );
    } catch (error) {
      throw toCommitError(error);
    }
  }
}
