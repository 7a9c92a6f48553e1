import { join } from 'node:path';
import { Readable } from 'node:stream';
import { ConfigError } from '#platform/kernel/config-error.js';
import { retryUntilAvailable } from '#platform/kernel/retry-until.js';
import {
  BEGINNING,
  type EventStore,
  type Position,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import { isAfter, parsePosition } from '#platform/event-store/port/position.js';
import type { Manifest } from './backup-manifest.js';
import type { Table } from './backup-tables.js';
import { TX, type LoggedPosition } from '../logged-positions.js';
import type { Progress } from '../progress.js';
import { writeSealed } from './sealed-file.js';

const PAGE = 1_000;

/** The table that PostgreSQL has of the history, which the log of another engine takes the place of. */
export const LOG_TABLE = 'es.events';

type Row = StoredEvent & { number: number };

/** The columns of LOG_TABLE as text. */
const COLUMNS: Record<string, (row: Row) => string | number> = {
  tx: () => TX,
  pos: ({ number }) => number,
  stream_id: ({ stream }) => stream,
  revision: ({ revision }) => revision,
  event_id: ({ id }) => id,
  type: ({ type }) => type,
  schema_version: ({ version }) => version,
  account_id: ({ meta }) => meta.accountId,
  data: ({ data }) => JSON.stringify(data),
  meta: ({ meta }) => JSON.stringify(meta),
  hash: ({ hash }) => `\\x${hash}`,
  recorded_at: ({ meta }) => meta.recordedAt,
};

export type WrittenLog = {
  table: Manifest['tables'][number];
  log: Manifest['log'];
  positions: LoggedPosition[];
};

/**
 * Writes the log of another engine, up to a position, as PostgreSQL's table of the history is backed up: the file
 * holds what `COPY` would have written there.
 * @param positions that the database stores; each is named by the last event at or before it
 */
export async function writeLog(
  { folder, key, tables }: { folder: string; key: Buffer; tables: Table[] },
  { store, end, positions }: { store: EventStore; end: Position; positions: string[] },
  progress: Progress,
): Promise<WrittenLog> {
  const table = tables.find(({ name }) => name === LOG_TABLE);
  if (!table) throw new Error(`there is no table ${LOG_TABLE}`);
  const revisions = new Map<string, number>();
  const logged = new LoggedPositions(positions);
  let events = 0;
  let last: StoredEvent | undefined;
  const numbered = async function* () {
    for await (const page of readPages(store, end)) {
      for (const event of page) {
        noteRevision(revisions, event);
        logged.pass(event);
        last = event;
      }
      yield page.map((event, i) => ({ ...event, number: events + i + 1 }));
      events += page.length;
      progress.add(page.length);
    }
  };
  const file = `${LOG_TABLE}.sealed`;
  const text = Readable.from(renderRows(table, numbered()));
  const sealed = await writeSealed(join(folder, file), key, LOG_TABLE, text);
  progress.end();
  return {
    table: { ...table, rows: events, file, ...sealed },
    log: {
      events,
      last: last ? { stream: last.stream, revision: last.revision, hash: last.hash } : null,
    },
    positions: logged.finish(),
  };
}

async function* readPages(store: EventStore, end: Position): AsyncGenerator<StoredEvent[]> {
  const read = (after: Position) =>
    retryUntilAvailable(() => store.readUntil(end, after, PAGE)).then((page) => ({ page }));
  // The server reads the next page while this one is written.
  for (let ahead = read(BEGINNING); ;) {
    const { page } = await ahead;
    const last = page.at(-1);
    if (!last) return;
    ahead = read(last.position);
    ahead.catch(() => undefined);
    yield page;
  }
}

/** @throws ConfigError when the stream has lost events, as after a truncation */
function noteRevision(revisions: Map<string, number>, { stream, revision }: StoredEvent): void {
  const next = (revisions.get(stream) ?? -1) + 1;
  if (revision !== next) {
    throw new ConfigError(
      `${stream}: event ${next} is missing in KurrentDB (EventStoreDB): inkpad verify lists what is.`,
    );
  }
  revisions.set(stream, revision);
}

/** Renders rows in the text format of `COPY`. */
async function* renderRows(
  { name, columns }: Table,
  pages: AsyncIterable<Row[]>,
): AsyncGenerator<Buffer> {
  const fields = columns.map((column) => {
    const expression = COLUMNS[column];
    if (!expression) throw new Error(`the log has nothing for ${name}.${column}`);
    return expression;
  });
  for await (const page of pages) {
    const lines = page.map((row) => fields.map((field) => escape(String(field(row)))).join('\t'));
    if (lines.length > 0) yield Buffer.from(`${lines.join('\n')}\n`);
  }
}

const ESCAPED: Record<string, string> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

function escape(text: string): string {
  return text.replaceAll(/[\\\n\r\t]/g, (character) => ESCAPED[character] ?? character);
}

/** Names positions by events, while the events pass in the order of the log. */
class LoggedPositions {
  private readonly open: { text: string; position: Position }[];
  private readonly named: LoggedPosition[] = [];
  private last: string | null = null;

  constructor(positions: string[]) {
    // As text they sort as positions do.
    this.open = [...new Set(positions)]
      .sort()
      .map((text) => ({ text, position: parsePosition(text) }));
  }

  pass({ id, position }: StoredEvent): void {
    for (let next = this.open[0]; next && isAfter(position, next.position); next = this.open[0]) {
      this.nameNext(next.text);
    }
    this.last = id;
  }

  finish(): LoggedPosition[] {
    for (let next = this.open[0]; next; next = this.open[0]) this.nameNext(next.text);
    return this.named;
  }

  private nameNext(text: string): void {
    this.named.push({ position: text, event_id: this.last });
    this.open.shift();
  }
}
