import type { Pool } from 'pg';
import type { DomainEvent } from '#kernel/aggregate.js';
import { inTransaction } from '#database/connection.js';
import { canonicalJson } from '../port/canonical-json.js';
import { newerEvent, recorded } from '../port/codec.js';
import { rowArguments } from '../postgres/commit-arguments.js';
import { type EventStore, type Head, type StoredEvent } from '../port/event-store.js';
import { eventHash } from '../port/hash-chain.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import { isAfter } from '../port/position.js';
import { streamOf, type Rows, type RowTable } from '../read-models/read-models.js';

/** A commit to EventStoreDB takes its claims before the stream exists, and releases claims after it has written. */
export const NAMED_IN_INTENTS = `
  select w ->> 'stream' as stream_id
  from es.intents i, json_array_elements(i.content -> 'writes') w`;

/** Looked up one by one: as a join, each slice would read the heads of all streams. */
const HEAD_OF_EACH = `left join lateral (
         select revision, hash from es.streams where stream_id = r.stream offset 0) s on true`;

type AnyTable = RowTable<{ accountId: number }, DomainEvent>;

/** A range of ids of one row table, both ends inclusive. */
export type Slice = { table: string; from: number; to: number };

export type Verified = {
  streams: number;
  events: number;
  /** One sentence for each difference. */
  faults: string[];
  /** Rows made by an older fold. That is not a difference: they are folded again when they are next loaded. */
  older: number;
  repaired: number;
};

type Row = {
  id: number;
  account_id: number;
  revision: number;
  hash: Buffer;
  projection_version: number;
  state: object;
  head_revision: number | null;
  head_hash: Buffer | null;
  last_revision: number | null;
  /** As `claimOf` writes them, with commas between them. */
  claims: string | null;
  /** A commit to the stream is in progress, so its claims are about to change. */
  pending: boolean;
};

/** How far the fold of a stream has got. */
type Progress = {
  row: Row;
  head: Head | null;
  position: StoredEvent['position'] | null;
  /** The state after the row's last event. */
  state: { accountId: number } | undefined;
  claims: Set<string>;
  /** Personal data cannot be read any more, so the values that were claimed since are not known. */
  erased: boolean;
  broken: boolean;
};

/**
 * Compares rows with the folds of their streams while the service runs. A row is read first, then its stream only up to
 * the row's revision. Whatever is written together with the row is read together with it, in one statement.
 */
export class Verification {
  private readonly tables: Map<string, AnyTable>;

  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
    private readonly rows: Rows,
    private readonly keys: PersonalKeys,
    tables: AnyTable[],
  ) {
    this.tables = new Map(tables.map((rows) => [rows.table, rows]));
  }

  /** @param repair whether to replace each row that is not the fold of its stream */
  async slice({ table, from, to }: Slice, repair: boolean): Promise<Verified> {
    const rows = this.tables.get(table);
    if (!rows) throw new Error(`${table} is not a row table`);
    const found = await this.read(rows, from, to);
    const verified: Verified = { streams: 0, events: 0, faults: [], older: 0, repaired: 0 };
    const byStream = new Map(found.map((row) => [streamOf(rows.aggregate, row.id), progress(row)]));
    const wanted = [...byStream].map(([stream, { row }]) => ({
      stream,
      to: Math.max(row.revision, row.head_revision ?? 0),
    }));
    for await (const events of this.store.readStreams(wanted)) {
      verified.events += events.length;
      await this.follow(rows, events, byStream, verified.faults);
    }
    const wrong: Row[] = [];
    for (const [stream, one] of byStream) {
      verified.streams++;
      if (one.row.projection_version !== rows.aggregate.foldVersion) verified.older++;
      const faults = this.rowFaults(rows, stream, one);
      verified.faults.push(...faults, ...this.claimFaults(stream, one));
      if (faults.length > 0) wrong.push(one.row);
    }
    if (repair) for (const row of wrong) verified.repaired += await this.repair(rows, row);
    return verified;
  }

  /** @returns 1, or 0 if the row has changed meanwhile */
  private async repair(rows: AnyTable, seen: Row): Promise<number> {
    const { aggregate, table } = rows;
    const stream = streamOf(aggregate, seen.id);
    const fold = await this.rows.fold(aggregate, stream);
    return inTransaction(this.pool, async (client) => {
      const { rowCount } = await client.query(
        `delete from ${table} where id = $1 and revision = $2 and hash = $3`,
        [seen.id, seen.revision, seen.hash],
      );
      if (rowCount !== 1) return 0;
      await client.query('delete from es.claims where stream_id = $1 and revision > $2', [
        stream,
        fold?.head.revision ?? -1,
      ]);
      if (!fold) return 1;
      const { state, head } = fold;
      const row = { table, id: seen.id, foldVersion: aggregate.foldVersion, state };
      await client.query('select es.write_read_models($1, $2, $3)', [
        ...rowArguments([{ accountId: state.accountId, stream, head, row }]),
        [stream],
      ]);
      return 1;
    });
  }

  /**
   * Includes what PostgreSQL writes in the same transaction; with EventStoreDB the heads would be of another moment.
   */
  private async read({ aggregate, table }: AnyTable, from: number, to: number): Promise<Row[]> {
    const heads = !this.store.rowsMayLag;
    const { rows } = await this.pool.query<Row>(
      `select r.id, r.account_id, r.revision, r.hash, r.projection_version, r.state,
         ${heads ? 's.revision' : 'null::bigint'} as head_revision,
         ${heads ? 's.hash' : 'null::bytea'} as head_hash,
         ${heads ? '(select max(e.revision) from es.events e where e.stream_id = r.stream)' : 'null::bigint'} as last_revision,
         (select string_agg(c.account_id || ' ' || c.kind || ' ' || encode(c.value, 'hex'), ',')
          from es.claims c where c.stream_id = r.stream) as claims,
         r.stream in (${NAMED_IN_INTENTS}) as pending
       from (select *, $3 || '-' || id as stream from ${table} where id between $1 and $2) r
       ${heads ? HEAD_OF_EACH : ''}
       order by r.id`,
      [from, to, aggregate.name],
    );
    return rows;
  }

  private async follow(
    rows: AnyTable,
    events: StoredEvent[],
    byStream: Map<string, Progress>,
    faults: string[],
  ): Promise<void> {
    const opened = await this.keys.opened(events);
    events.forEach((event, i) => {
      const one = byStream.get(event.stream);
      const plain = opened[i];
      if (!one || !plain || one.broken) return;
      const fault = chainFault(event, one) ?? newerEvent(rows.aggregate, event)?.message;
      if (fault !== undefined) {
        faults.push(fault);
        one.broken = true;
        return;
      }
      one.head = { revision: event.revision, hash: event.hash };
      one.position = event.position;
      if (event.revision > one.row.revision) return;
      const fact = recorded<DomainEvent>(rows.aggregate, plain);
      if (event.data['personal'] != null && plain.data['personal'] === null) one.erased = true;
      const { taken = [], released = [], none } = rows.claimsOf?.(fact, one.state) ?? {};
      if (none) {
        one.claims.clear();
        one.erased = false;
      }
      for (const claim of released) one.claims.delete(this.claimOf(event, claim));
      for (const claim of taken) one.claims.add(this.claimOf(event, claim));
      one.state = rows.aggregate.evolve(one.state, fact);
    });
  }

  private claimOf({ stream, meta }: StoredEvent, given: { kind: string; value: string }): string {
    const { kind, value } = this.keys.claim(meta.accountId, given.kind, given.value, stream);
    return `${meta.accountId} ${kind} ${value.toString('hex')}`;
  }

  private rowFaults({ table, aggregate }: AnyTable, stream: string, one: Progress): string[] {
    const { row, head, state, broken } = one;
    if (broken) return [];
    if (head === null) return [`${table} ${row.id}: the row has no stream`];
    const last = Math.max(row.revision, row.head_revision ?? 0, row.last_revision ?? 0);
    if (head.revision < row.revision) {
      return [
        `${stream}: the row is at revision ${row.revision}, the stream ends at ${head.revision}`,
      ];
    }
    const faults: string[] = [];
    if (!this.store.rowsMayLag) {
      if (row.head_revision === null) faults.push(`${stream}: the stream has no head`);
      else if (row.head_revision < last || row.head_hash?.toString('hex') !== head.hash) {
        faults.push(`${stream}: the stream's head is not its last event`);
      }
      if (row.revision < last) faults.push(`${stream}: the row is behind its stream`);
    }
    const current = row.projection_version === aggregate.foldVersion;
    if (row.revision === head.revision && row.hash.toString('hex') !== head.hash) {
      faults.push(`${stream}: the row does not have the hash of its last event`);
    } else if (current && canonicalJson(row.state) !== canonicalJson(state)) {
      faults.push(`${stream}: the row is not the fold of the stream`);
    } else if (row.account_id !== state?.accountId) {
      faults.push(`${stream}: the row belongs to another account`);
    }
    return faults;
  }

  private claimFaults(stream: string, { row, claims, erased, broken, head }: Progress): string[] {
    if (broken || head === null || erased || row.pending) return [];
    const held = new Set(row.claims?.split(','));
    const kindOf = (claim: string) => claim.split(' ')[1];
    const faults: string[] = [];
    for (const claim of held) {
      if (claims.has(claim)) continue;
      faults.push(`${stream}: it holds a ${kindOf(claim)} that its history does not contain`);
    }
    for (const claim of claims) {
      if (!held.has(claim)) faults.push(`${stream}: its ${kindOf(claim)} is not claimed`);
    }
    return faults;
  }
}

function progress(row: Row): Progress {
  return {
    row,
    head: null,
    position: null,
    state: undefined,
    claims: new Set(),
    erased: false,
    broken: false,
  };
}

/** What is wrong with an event as the next one of its stream. */
function chainFault(event: StoredEvent, { head, position }: Progress): string | undefined {
  const { stream, revision } = event;
  const next = head === null ? 0 : head.revision + 1;
  if (revision !== next) return `${stream}: event ${next} is missing`;
  if (eventHash(stream, head, event) !== event.hash) {
    return `${stream}: event ${revision} breaks the hash chain`;
  }
  if (position !== null && !isAfter(event.position, position)) {
    return `${stream}: event ${revision} comes before ${revision - 1} in the log`;
  }
  return undefined;
}
