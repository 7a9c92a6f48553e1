import { parseStreamName } from '#kernel/aggregate.js';
import type pg from 'pg';
import type { AnyReadModel } from '../read-models/read-models.js';
import { STREAMS_OF_EVENTS } from './orphaned-streams.js';
import type { StreamRange } from './stream-replay.js';

const LAST_REVISIONS = `
  select n.stream_id, (select max(e.revision) from es.events e where e.stream_id = n.stream_id) as last
  from (${STREAMS_OF_EVENTS}) n`;

/** Lists the streams of read models in PostgreSQL, in pages. */
export class StreamRanges {
  private readonly names: Set<string>;

  constructor(
    private readonly client: pg.ClientBase,
    readModels: AnyReadModel[],
  ) {
    this.names = new Set(readModels.map(({ aggregate }) => aggregate.name));
  }

  async *read(): AsyncGenerator<StreamRange[]> {
    for (let after = ''; ;) {
      const { rows } = await this.client.query<{ stream_id: string; last: number }>(
        LAST_REVISIONS,
        [after],
      );
      const last = rows.at(-1);
      if (!last) return;
      yield rows
        .filter(({ stream_id }) => this.isOurs(stream_id))
        .map(({ stream_id, last: to }) => ({ stream: stream_id, to }));
      after = last.stream_id;
    }
  }

  private isOurs(stream: string): boolean {
    return this.names.has(parseStreamName(stream).aggregate);
  }
}
