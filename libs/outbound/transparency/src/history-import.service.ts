import { createHash } from 'node:crypto';
import { Pool } from 'pg';
import type { DomainEvent } from '#kernel/aggregate.js';
import { ConfigError } from '#kernel/config.js';
import type { Verifier } from '#kernel/signed-note.js';
import { raiseSequence } from '#database/ids.js';
import { inTransaction } from '#database/connection.js';
import { appendGroups } from '#event-store/append-groups.js';
import { recorded } from '#event-store/codec.js';
import { rowArguments } from '#event-store/commit-arguments.js';
import {
  ConflictError,
  type EventStore,
  type Head,
  type StoredEvent,
} from '#event-store/event-store.js';
import type { EventTypes } from '#event-store/event-types.js';
import { eventHash } from '#event-store/hash-chain.js';
import type { PersonalKeys } from '#event-store/personal-keys.js';
import { isSealedWith, type SealedEvent } from '#event-store/personal-parts.js';
import type { RowTable } from '#event-store/rows.js';
import {
  follow,
  newProgress,
  placedRow,
  type StreamProgress,
} from '#event-store/stream-progress.js';
import { startMessages } from '#messages/card-messages.service.js';
import { customerSubjects } from '#stamping/customer-subjects.js';
import { openedCheckpoint } from './checkpoint.js';
import {
  EXPORT_FORMAT,
  ExportCheck,
  ExportFault,
  pictureIn,
  type ExportedKey,
  type ExportedPicture,
  type ExportEnd,
  type ExportHeader,
  type ExportLine,
} from './exported-history.js';

type Exported = Omit<StoredEvent, 'position'>;
type AnyTable = RowTable<{ accountId: number }, DomainEvent>;
type Lines = () => AsyncIterable<string>;

const STREAMS_AT_ONCE = 200;

export type Imported = ExportEnd & { accountId: number; customers: number };

/** What the first reading of a file has found. */
type Found = {
  accountId: number;
  end: ExportEnd;
  /** Of each stream in the file. */
  heads: Map<string, Head>;
  /** What of them is there already, from a run that was interrupted. */
  there: Map<string, Head>;
  keys: ExportedKey[];
};

/**
 * Takes over a store from another instance: the same ids, events and hashes. Everything is checked before anything is
 * written, and a run that was interrupted is continued by the next. Nobody can reach the store before it has a member.
 */
export class HistoryImport {
  private readonly tables: Map<string, AnyTable>;

  constructor(
    private readonly pool: Pool,
    private readonly store: EventStore,
    private readonly keys: PersonalKeys,
    private readonly types: EventTypes,
    tables: AnyTable[],
  ) {
    this.tables = new Map(tables.map((rows) => [rows.aggregate.name, rows]));
  }

  /** @throws ConfigError: nothing was written, or what was written is completed by the next run */
  async run(lines: Lines, verifier: Verifier): Promise<Imported> {
    const found = await this.check(lines, verifier);
    await this.raiseSequences(lines, found);
    for (const { customer_id: id, key, renewed = false } of found.keys) {
      if (key !== null) await this.keys.adopt(id, Buffer.from(key, 'base64'), renewed);
    }
    await this.adoptPictures(lines, found);
    await startMessages(this.pool, found.accountId);
    try {
      await this.append(lines, found.there);
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      throw new ConfigError(
        'A record with one of these ids was created at the same time. Stop the api and run this again.',
        { cause: error },
      );
    }
    await this.writeRows(found.heads);
    return { ...found.end, accountId: found.accountId, customers: found.keys.length };
  }

  private async check(lines: Lines, verifier: Verifier): Promise<Found> {
    let number = 0;
    try {
      const { header, check } = await this.begin(lines, verifier);
      const there = new Map<string, Head>();
      const keys: ExportedKey[] = [];
      const customers = new Customers();
      const pictures = new Pictures();
      for await (const line of lines()) {
        if (++number === 1) continue;
        const entry = parsed(line);
        if ('event' in entry) {
          check.event(entry);
          customers.expect(entry.event);
          pictures.expect(entry.event);
          await this.compare(entry.event, there);
        } else if ('personal_key' in entry) {
          customers.check(entry.personal_key);
          keys.push(entry.personal_key);
        } else if ('picture' in entry) pictures.check(entry.picture);
        else if ('end' in entry) check.end(entry.end);
        else throw new ExportFault('this line is of no known kind');
      }
      const end = check.done();
      customers.done();
      pictures.done();
      for (const [stream, { revision }] of there) {
        if (revision > (check.heads.get(stream)?.revision ?? -1)) throw taken(stream);
      }
      await this.refuseOtherKeys(keys);
      return { accountId: header.account_id, end, heads: check.heads, there, keys };
    } catch (error) {
      if (!(error instanceof ExportFault)) throw error;
      throw new ConfigError(
        `Line ${Math.max(1, number)}: ${error.message}. Nothing was imported.`,
        {
          cause: error,
        },
      );
    }
  }

  private async begin(
    lines: Lines,
    verifier: Verifier,
  ): Promise<{ header: ExportHeader; check: ExportCheck<Exported> }> {
    for await (const line of lines()) {
      const header = parsed(line);
      if (!('format' in header) || header.format !== EXPORT_FORMAT) {
        throw new ExportFault(`the format is not ${EXPORT_FORMAT}`);
      }
      const tree = openedCheckpoint(String(header.checkpoint), verifier);
      if (!tree) throw new ExportFault(`the checkpoint was not signed by ${verifier.name}`);
      if (!header.personal) {
        throw new ExportFault(
          'it was exported without --personal, and its customers need their keys',
        );
      }
      const hashed = (event: Exported, before: Head | null) =>
        eventHash(event.stream, before, event);
      return { header, check: new ExportCheck(header.account_id, tree, hashed) };
    }
    throw new ExportFault('the file is empty');
  }

  /** @throws ExportFault when the stream is there with other events */
  private async compare(event: Exported, there: Map<string, Head>): Promise<void> {
    const { stream, revision, hash } = event;
    if (!this.types.knows(event) || !this.tables.has(kindOf(stream))) {
      throw new ExportFault(`this version does not know ${event.type} of ${stream}`);
    }
    if (revision === 0) {
      for await (const last of this.store.readStream(stream, { direction: 'backwards' })) {
        there.set(stream, { revision: last.revision, hash: last.hash });
        break;
      }
    }
    const known = there.get(stream);
    if (known?.revision === revision && known.hash !== hash) throw taken(stream);
  }

  private async refuseOtherKeys(keys: ExportedKey[]): Promise<void> {
    const known = await this.keys.exported(keys.map(({ customer_id: id }) => id));
    for (const { customer_id: id, key } of keys) {
      const other = known.get(id);
      if (other && other.current.toString('base64') !== key) throw taken(`customer-${id}`);
    }
  }

  /** Before anything is written, so that the service gives none of these ids to others. */
  private async raiseSequences(lines: Lines, { heads }: Found): Promise<void> {
    const greatest = new Map<string, number>();
    const note = (table: string, id: number) =>
      greatest.set(table, Math.max(id, greatest.get(table) ?? 0));
    for (const stream of heads.keys()) note(this.tableOf(stream).table, idIn(stream));
    for await (const line of lines()) {
      const entry = parsed(line);
      if (!('event' in entry)) continue;
      const { aggregate, idsIn } = this.tableOf(entry.event.stream);
      const more = idsIn?.(recorded<DomainEvent>(aggregate, entry.event)) ?? {};
      for (const [table, id] of Object.entries(more)) note(table, id);
    }
    for (const [table, id] of greatest) await raiseSequence(this.pool, table, id);
  }

  /** Before the events that name them. */
  private async adoptPictures(lines: Lines, { accountId }: Found): Promise<void> {
    for await (const line of lines()) {
      const entry = parsed(line);
      if (!('picture' in entry)) continue;
      const { hash, png } = entry.picture;
      await this.pool.query(
        `insert into pictures (hash, account_id, png) values ($1, $2, $3)
         on conflict (hash, account_id) do nothing`,
        [hash, accountId, Buffer.from(png, 'base64')],
      );
    }
  }

  private async append(lines: Lines, there: Map<string, Head>): Promise<void> {
    const heads = new Map(there);
    for await (const group of appendGroups(missing(lines, there))) {
      const { stream, meta } = group[0];
      const [head] = await this.store.commit({
        accountId: meta.accountId,
        writes: [{ stream, expected: heads.get(stream) ?? null, events: group.map(asNew) }],
      });
      if (head) heads.set(stream, head);
    }
  }

  private async writeRows(heads: Map<string, Head>): Promise<void> {
    const streams = [...heads].map(([stream, { revision }]) => ({ stream, to: revision }));
    for (let at = 0; at < streams.length; at += STREAMS_AT_ONCE) {
      const folds = new Map<string, StreamProgress>();
      const some = streams.slice(at, at + STREAMS_AT_ONCE);
      for await (const events of this.store.readStreams(some)) {
        const opened = await this.keys.opened(events);
        for (const [i, event] of events.entries()) {
          const { stream } = event;
          const fold = folds.get(stream) ?? newProgress(this.tableOf(stream), stream, idIn(stream));
          folds.set(stream, fold);
          follow(fold, event, opened[i] ?? event, this.keys);
        }
      }
      for (const fold of folds.values()) await this.writeRow(fold);
    }
  }

  private async writeRow(fold: StreamProgress): Promise<void> {
    const placed = placedRow(fold);
    if (!placed) throw new Error(`${fold.stream} has no event`);
    const { accountId, stream } = placed;
    const held = [...fold.claims.values()];
    await inTransaction(this.pool, async (client) => {
      await client.query(
        `insert into es.claims (account_id, kind, value, stream_id, revision)
         select $1, k, decode(v, 'hex'), $2, r
         from unnest($3::text[], $4::text[], $5::bigint[]) as x (k, v, r)
         on conflict do nothing`,
        [
          accountId,
          stream,
          held.map(({ kind }) => kind),
          held.map(({ value }) => value),
          held.map(({ revision }) => revision),
        ],
      );
      await client.query('select es.write_read_models($1, $2, $3)', [
        ...rowArguments([placed]),
        [stream],
      ]);
    });
  }

  private tableOf(stream: string): AnyTable {
    const rows = this.tables.get(kindOf(stream));
    if (!rows) throw new Error(`no aggregate has the stream ${stream}`);
    return rows;
  }
}

/**
 * That every customer of a file has a key, and that it opens what was sealed for them: keys are not part of what was
 * signed, and one that was taken over cannot be exchanged later.
 */
class Customers {
  /** The ids of those whose key has not come yet. */
  private readonly missing = new Set<number>();
  private readonly sealed = new Map<number, SealedEvent>();

  expect({ stream, id, type, data }: Exported): void {
    if (kindOf(stream) === 'customer') this.missing.add(idIn(stream));
    const customerId = customerSubjects.ofPersonalPart(data);
    if (customerId === undefined || this.sealed.has(customerId)) return;
    this.sealed.set(customerId, { id, type, data });
  }

  /** @throws ExportFault */
  check({ customer_id: id, key, renewed = false }: ExportedKey): void {
    this.missing.delete(id);
    const event = this.sealed.get(id);
    if (key === null || renewed || !event) return;
    if (!isSealedWith(Buffer.from(key, 'base64'), event)) {
      throw new ExportFault(`the key of customer ${id} does not open what was sealed with it`);
    }
  }

  /** @throws ExportFault */
  done(): void {
    for (const id of this.missing) throw new ExportFault(`the key of customer ${id} is missing`);
  }
}

/** That the pictures of a file are those, and all of those, that its events name. */
class Pictures {
  /** The hashes of those that have not come yet. */
  private readonly missing = new Set<string>();

  expect(event: Exported): void {
    const picture = pictureIn(event);
    if (picture !== undefined) this.missing.add(picture);
  }

  /** @throws ExportFault */
  check({ hash, png }: ExportedPicture): void {
    const actual = createHash('sha256').update(Buffer.from(png, 'base64')).digest('hex');
    if (actual !== hash) throw new ExportFault(`the picture ${hash} was changed`);
    if (!this.missing.delete(hash)) throw new ExportFault(`no event names the picture ${hash}`);
  }

  /** @throws ExportFault */
  done(): void {
    for (const hash of this.missing) throw new ExportFault(`the picture ${hash} is missing`);
  }
}

async function* missing(lines: Lines, there: Map<string, Head>): AsyncIterable<Exported> {
  for await (const line of lines()) {
    const entry = parsed(line);
    if (!('event' in entry)) continue;
    const { event } = entry;
    if (event.revision > (there.get(event.stream)?.revision ?? -1)) yield event;
  }
}

function asNew({ id, type, version, data, meta }: Exported) {
  return { id, type, version, data, meta };
}

function kindOf(stream: string): string {
  return stream.slice(0, stream.lastIndexOf('-'));
}

function idIn(stream: string): number {
  return Number(stream.slice(stream.lastIndexOf('-') + 1));
}

function taken(stream: string): ExportFault {
  return new ExportFault(`${stream} is taken here by another record, or has gone on`);
}

function parsed(line: string): ExportLine<Exported> {
  try {
    return JSON.parse(line) as ExportLine<Exported>;
  } catch (cause) {
    throw new ExportFault('this is no JSON object', { cause });
  }
}
