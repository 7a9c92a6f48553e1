import { createHash } from 'node:crypto';
import { Pool } from 'pg';
import { parseStreamName, type DomainEvent } from '#platform/kernel/aggregate.js';
import { ConfigError } from '#platform/kernel/config-error.js';
import type { Verifier } from '#platform/kernel/signed-note.js';
import { raiseSequence } from '#platform/database/ids.js';
import { inTransaction } from '#platform/database/connection.js';
import { groupAppends } from '#platform/event-store/port/history-writer.js';
import { toRecorded } from '#platform/event-store/port/codec.js';
import { toReadModelArguments } from '#platform/event-store/postgres/commit-arguments.js';
import {
  ConflictError,
  type EventStore,
  type Head,
  type StoredEvent,
} from '#platform/event-store/port/event-store.js';
import type { EventTypes } from '#platform/event-store/port/event-types.js';
import { hashEvent } from '#platform/event-store/port/hash-chain.js';
import type { PersonalKeys } from '#platform/event-store/personal-keys/personal-keys.js';
import {
  isSealedWith,
  type SealedEvent,
} from '#platform/event-store/personal-keys/personal-parts.js';
import { openPage } from '#platform/event-store/read-models/fold-stream.js';
import type { ReadModel } from '#platform/event-store/read-models/read-models.js';
import {
  applyEvent,
  createReplay,
  toReadModelUpdate,
  type StreamReplay,
} from '#platform/event-store/verification/stream-replay.js';
import { startMessages } from '#outbound/messages/card-link-requests.service.js';
import { customerSubjects } from '#loyalty/stamping/customer-subjects.js';
import { openCheckpoint } from './checkpoint.js';
import {
  EXPORT_FORMAT,
  ExportValidator,
  InvalidExportError,
  findPictureHash,
  type ExportedKey,
  type ExportedPicture,
  type ExportEnd,
  type ExportHeader,
  type ExportLine,
} from './store-transfer-file.js';

type ExportedEventData = Omit<StoredEvent, 'position'>;
type AnyReadModel = ReadModel<{ accountId: number }, DomainEvent>;
type Lines = () => AsyncIterable<string>;

const STREAM_BATCH_SIZE = 200;

export type ImportResult = ExportEnd & { accountId: number; customers: number };

/** The result of the first pass over a file, which validates it. */
type CheckedFile = {
  accountId: number;
  end: ExportEnd;
  /** The last event of each stream in the file. */
  heads: Map<string, Head>;
  /** The last event of each stream that an interrupted run has already imported. */
  existingHeads: Map<string, Head>;
  keys: ExportedKey[];
};

/**
 * Imports a store from another instance with the same ids, events and hashes. Everything is validated before anything
 * is written, and the next run continues an interrupted one. Nobody can access the store before it has a member.
 */
export class StoreImport {
  private readonly tables: Map<string, AnyReadModel>;

  constructor(
    private readonly pool: Pool,
    private readonly eventStore: EventStore,
    private readonly keys: PersonalKeys,
    private readonly types: EventTypes,
    tables: AnyReadModel[],
  ) {
    this.tables = new Map(tables.map((rows) => [rows.name, rows]));
  }

  /** Imports a file. @throws ConfigError: nothing was written, or the next run completes what was written */
  async run(lines: Lines, verifier: Verifier): Promise<ImportResult> {
    const file = await this.check(lines, verifier);
    await this.raiseSequences(lines, file);
    for (const { customer_id: id, key, renewed = false } of file.keys) {
      if (key !== null) await this.keys.adopt(id, Buffer.from(key, 'base64'), renewed);
    }
    await this.adoptPictures(lines, file);
    await startMessages(this.pool, file.accountId);
    try {
      await this.append(lines, file.existingHeads);
    } catch (error) {
      if (!(error instanceof ConflictError)) throw error;
      throw new ConfigError(
        'A record with one of these ids was created at the same time. Stop the api and run this again.',
        { cause: error },
      );
    }
    await this.writeReadModels(file.heads);
    return { ...file.end, accountId: file.accountId, customers: file.keys.length };
  }

  private async check(lines: Lines, verifier: Verifier): Promise<CheckedFile> {
    let lineNumber = 0;
    try {
      const { header, validator } = await this.readHeader(lines, verifier);
      const existingHeads = new Map<string, Head>();
      const keys: ExportedKey[] = [];
      const customers = new CustomerKeyCheck();
      const pictures = new PictureCheck();
      for await (const line of lines()) {
        if (++lineNumber === 1) continue;
        const entry = parseLine(line);
        if ('event' in entry) {
          validator.checkEvent(entry);
          customers.expect(entry.event);
          pictures.expect(entry.event);
          await this.assertSameEvents(entry.event, existingHeads);
        } else if ('personal_key' in entry) {
          customers.check(entry.personal_key);
          keys.push(entry.personal_key);
        } else if ('picture' in entry) pictures.check(entry.picture);
        else if ('end' in entry) validator.checkEnd(entry.end);
        else throw new InvalidExportError('the kind of this line is unknown');
      }
      const end = validator.finish();
      customers.finish();
      pictures.finish();
      for (const [stream, { revision }] of existingHeads) {
        if (revision > (validator.heads.get(stream)?.revision ?? -1))
          throw createConflictError(stream);
      }
      await this.refuseOtherKeys(keys);
      return {
        accountId: header.account_id,
        end,
        heads: validator.heads,
        existingHeads,
        keys,
      };
    } catch (error) {
      if (!(error instanceof InvalidExportError)) throw error;
      throw new ConfigError(
        `Line ${Math.max(1, lineNumber)}: ${error.message}. Nothing was imported.`,
        {
          cause: error,
        },
      );
    }
  }

  private async readHeader(
    lines: Lines,
    verifier: Verifier,
  ): Promise<{ header: ExportHeader; validator: ExportValidator<ExportedEventData> }> {
    for await (const line of lines()) {
      const header = parseLine(line);
      if (!('format' in header) || header.format !== EXPORT_FORMAT) {
        throw new InvalidExportError(`the format is not ${EXPORT_FORMAT}`);
      }
      const tree = openCheckpoint(String(header.checkpoint), verifier);
      if (!tree) throw new InvalidExportError(`the checkpoint was not signed by ${verifier.name}`);
      if (!header.personal) {
        throw new InvalidExportError(
          'it was exported without --personal, and its customers need their keys',
        );
      }
      const hashExported = (event: ExportedEventData, before: Head | null) =>
        hashEvent(event.stream, before, event);
      return { header, validator: new ExportValidator(header.account_id, tree, hashExported) };
    }
    throw new InvalidExportError('the file is empty');
  }

  /** @throws InvalidExportError when the stream exists with other events */
  private async assertSameEvents(
    event: ExportedEventData,
    existingHeads: Map<string, Head>,
  ): Promise<void> {
    const { stream, revision, hash } = event;
    if (!this.types.knows(event) || !this.tables.has(parseStreamName(stream).aggregate)) {
      throw new InvalidExportError(`this version does not know ${event.type} of ${stream}`);
    }
    if (revision === 0) {
      for await (const last of this.eventStore.readStream(stream, { direction: 'backwards' })) {
        existingHeads.set(stream, { revision: last.revision, hash: last.hash });
        break;
      }
    }
    const existing = existingHeads.get(stream);
    if (existing?.revision === revision && existing.hash !== hash)
      throw createConflictError(stream);
  }

  private async refuseOtherKeys(keys: ExportedKey[]): Promise<void> {
    const existingKeys = await this.keys.findForExport(keys.map(({ customer_id: id }) => id));
    for (const { customer_id: id, key } of keys) {
      const existing = existingKeys.get(id);
      if (existing && existing.current.toString('base64') !== key)
        throw createConflictError(`customer-${id}`);
    }
  }

  /**
   * Raises the sequences before anything is written, so that the service does not assign these ids to other records.
   */
  private async raiseSequences(lines: Lines, { heads }: CheckedFile): Promise<void> {
    const highestIds = new Map<string, number>();
    const raise = (table: string, id: number) =>
      highestIds.set(table, Math.max(id, highestIds.get(table) ?? 0));
    for (const stream of heads.keys())
      raise(this.getReadModel(stream).table, parseStreamName(stream).id);
    for await (const line of lines()) {
      const entry = parseLine(line);
      if (!('event' in entry)) continue;
      const readModel = this.getReadModel(entry.event.stream);
      const otherIds =
        readModel.getOtherIds?.(toRecorded<DomainEvent>(readModel, entry.event)) ?? {};
      for (const [table, id] of Object.entries(otherIds)) raise(table, id);
    }
    for (const [table, id] of highestIds) await raiseSequence(this.pool, table, id);
  }

  /** Stores the pictures, before the events that name them. */
  private async adoptPictures(lines: Lines, { accountId }: CheckedFile): Promise<void> {
    for await (const line of lines()) {
      const entry = parseLine(line);
      if (!('picture' in entry)) continue;
      const { hash, png } = entry.picture;
      if (png === null) continue;
      await this.pool.query(
        `insert into pictures (hash, account_id, png) values ($1, $2, $3)
         on conflict (hash, account_id) do nothing`,
        [hash, accountId, Buffer.from(png, 'base64')],
      );
    }
  }

  private async append(lines: Lines, existingHeads: Map<string, Head>): Promise<void> {
    const heads = new Map(existingHeads);
    for await (const group of groupAppends(listMissingEvents(lines, existingHeads))) {
      const { stream, meta } = group[0];
      const [head] = await this.eventStore.commit({
        accountId: meta.accountId,
        writes: [{ stream, expected: heads.get(stream) ?? null, events: group.map(toNewEvent) }],
      });
      if (head) heads.set(stream, head);
    }
  }

  private async writeReadModels(heads: Map<string, Head>): Promise<void> {
    const streams = [...heads].map(([stream, { revision }]) => ({ stream, to: revision }));
    for (let offset = 0; offset < streams.length; offset += STREAM_BATCH_SIZE) {
      const projections = new Map<string, StreamReplay>();
      const batch = streams.slice(offset, offset + STREAM_BATCH_SIZE);
      for await (const events of this.eventStore.readStreams(batch)) {
        for (const event of await openPage(this.keys, events)) {
          const { stream } = event.stored;
          const projection =
            projections.get(stream) ??
            createReplay(this.getReadModel(stream), stream, parseStreamName(stream).id);
          projections.set(stream, projection);
          applyEvent(projection, event, this.keys);
        }
      }
      for (const projection of projections.values()) await this.writeReadModel(projection);
    }
  }

  private async writeReadModel(projection: StreamReplay): Promise<void> {
    const row = toReadModelUpdate(projection);
    if (!row) throw new Error(`${projection.stream} has no event`);
    const { accountId, stream } = row;
    const claims = [...projection.claims.values()];
    await inTransaction(this.pool, async (client) => {
      await client.query(
        `insert into es.claims (account_id, kind, value, stream_id, revision)
         select $1, k, decode(v, 'hex'), $2, r
         from unnest($3::text[], $4::text[], $5::bigint[]) as x (k, v, r)
         on conflict do nothing`,
        [
          accountId,
          stream,
          claims.map(({ kind }) => kind),
          claims.map(({ value }) => value),
          claims.map(({ revision }) => revision),
        ],
      );
      await client.query('select es.write_read_models($1, $2, $3)', [
        ...toReadModelArguments([row]),
        [stream],
      ]);
    });
  }

  private getReadModel(stream: string): AnyReadModel {
    const rows = this.tables.get(parseStreamName(stream).aggregate);
    if (!rows) throw new Error(`no aggregate has the stream ${stream}`);
    return rows;
  }
}

/**
 * Checks that every customer of a file has a key that opens their sealed data. The signature does not cover keys, and
 * an imported key cannot be replaced later.
 */
class CustomerKeyCheck {
  /** The ids of customers whose key has not been read yet. */
  private readonly missing = new Set<number>();
  private readonly sealed = new Map<number, SealedEvent>();

  expect({ stream, id, type, data }: ExportedEventData): void {
    if (parseStreamName(stream).aggregate === 'customer')
      this.missing.add(parseStreamName(stream).id);
    const customerId = customerSubjects.findInPersonalPart(data);
    if (customerId === undefined || this.sealed.has(customerId)) return;
    this.sealed.set(customerId, { id, type, data });
  }

  /** @throws InvalidExportError */
  check({ customer_id: id, key, renewed = false }: ExportedKey): void {
    this.missing.delete(id);
    const event = this.sealed.get(id);
    if (key === null || renewed || !event) return;
    if (!isSealedWith(Buffer.from(key, 'base64'), event)) {
      throw new InvalidExportError(`the key of customer ${id} does not open their data`);
    }
  }

  /** @throws InvalidExportError */
  finish(): void {
    for (const id of this.missing)
      throw new InvalidExportError(`the key of customer ${id} is missing`);
  }
}

/** Checks that the pictures of a file are exactly those that its events name. */
class PictureCheck {
  /** The hashes of pictures that have not been read yet. */
  private readonly missing = new Set<string>();

  expect(event: ExportedEventData): void {
    const picture = findPictureHash(event);
    if (picture !== undefined) this.missing.add(picture);
  }

  /** @throws InvalidExportError */
  check({ hash, png }: ExportedPicture): void {
    const actual =
      png === null ? hash : createHash('sha256').update(Buffer.from(png, 'base64')).digest('hex');
    if (actual !== hash) throw new InvalidExportError(`the picture ${hash} was changed`);
    if (!this.missing.delete(hash))
      throw new InvalidExportError(`no event names the picture ${hash}`);
  }

  /** @throws InvalidExportError */
  finish(): void {
    for (const hash of this.missing) throw new InvalidExportError(`the picture ${hash} is missing`);
  }
}

async function* listMissingEvents(
  lines: Lines,
  existingHeads: Map<string, Head>,
): AsyncIterable<ExportedEventData> {
  for await (const line of lines()) {
    const entry = parseLine(line);
    if (!('event' in entry)) continue;
    const { event } = entry;
    if (event.revision > (existingHeads.get(event.stream)?.revision ?? -1)) yield event;
  }
}

function toNewEvent({ id, type, version, data, meta }: ExportedEventData) {
  return { id, type, version, data, meta };
}

function createConflictError(stream: string): InvalidExportError {
  return new InvalidExportError(
    `${stream} is already used by another record here, or has newer events`,
  );
}

function parseLine(line: string): ExportLine<ExportedEventData> {
  try {
    return JSON.parse(line) as ExportLine<ExportedEventData>;
  } catch (cause) {
    throw new InvalidExportError('this is not a JSON object', { cause });
  }
}
