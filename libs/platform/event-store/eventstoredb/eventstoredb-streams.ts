import { START, type JSONRecordedEvent, type RecordedEvent } from '@eventstore/db-client';
import type { EventMeta } from '#platform/kernel/aggregate.js';
import {
  BEGINNING,
  type JsonObject,
  type NewEvent,
  type Position,
  type StoredEvent,
} from '../port/event-store.js';
import { isAfter } from '../port/position.js';
import type { Append } from './batch-appends.js';
import type { ForeignEvents } from './foreign-events.js';

type Metadata = EventMeta & { schemaVersion: number; hash: string };

const NUMBER = /^[1-9]\d*$/;
const HASH = /^[0-9a-f]{64}$/;
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/**
 * Tells our streams from others on the same server, and converts the server's events to stored events. An event is ours
 * if its stream is one of our kinds with a number, and if it has our data and metadata. Everybody else who may append to
 * the server may use names like ours, and nothing of theirs gets further than here.
 */
export class OwnStreams {
  /** Prefixes of our streams' names and of those of their settings, for the server's filters. */
  readonly prefixes: string[];
  /** The position of the event that links our history to its database, before which the log has nothing of ours. */
  historyStart: Position = BEGINNING;
  private readonly ownPrefixes: string[];

  /**
   * @param prefix in front of every stream's name
   * @param beginnings how our streams' names begin; other streams on the server are not read
   * @param foreignEvents gets what is in streams with names like ours and is not ours, each time that it is read, and what
   *   administrators set for such streams
   */
  constructor(
    private readonly prefix: string,
    beginnings: string[],
    private readonly foreignEvents?: Pick<ForeignEvents, 'addEvent' | 'addSettings'>,
  ) {
    this.ownPrefixes = beginnings.map((beginning) => prefix + beginning);
    this.prefixes = [...this.ownPrefixes, ...this.ownPrefixes.map((own) => `$$${own}`)];
  }

  getStreamName(stream: string): string {
    return this.prefix + stream;
  }

  /** Returns where a read of the log begins. Others may have written for years before our history began. */
  getReadStart(after: Position): Position | typeof START {
    const from = isAfter(after, this.historyStart) ? after : this.historyStart;
    return isAfter(from, BEGINNING) ? from : START;
  }

  /** Converts an event of the server; undefined for an event that is not ours. */
  toStoredEvent(recorded: JSONRecordedEvent): StoredEvent | undefined {
    const { id, streamId, revision, type, data } = recorded;
    const isSettings = streamId.startsWith('$$');
    const stream = isSettings ? streamId.slice(2) : streamId;
    const beginning = this.ownPrefixes.find((prefix) => stream.startsWith(prefix));
    if (beginning === undefined) return undefined;
    if (isSettings) {
      if (isObject(data)) this.foreignEvents?.addSettings({ stream, revision, settings: data });
      return undefined;
    }
    const number = streamId.slice(beginning.length);
    const isNumbered = NUMBER.test(number) && Number.isSafeInteger(Number(number));
    const metadata = parseMetadata(recorded.metadata);
    const isOurs = isNumbered && !type.startsWith('$') && recorded.isJson && isObject(data);
    if (!isOurs || !metadata || !Number.isSafeInteger(Number(revision))) {
      this.foreignEvents?.addEvent({
        stream: streamId,
        revision,
        type,
        createdAt: recorded.created,
      });
      return undefined;
    }
    const { schemaVersion, hash, ...meta } = metadata;
    return {
      id,
      stream: streamId.slice(this.prefix.length),
      revision: Number(revision),
      type,
      version: schemaVersion,
      data: data as JsonObject,
      meta,
      hash,
      position: getPosition(recorded),
    };
  }
}

/** Converts an event to that of the server: the opposite of `toStoredEvent`. */
export function toServerEvent(
  { id, type, version, data, meta }: NewEvent,
  hash: string | undefined,
): Append['events'][number] {
  return { id, type, data, metadata: { ...meta, schemaVersion: version, hash } };
}

export function getPosition(recorded: RecordedEvent): Position {
  const { position } = recorded as { position?: Position };
  if (!position) throw new Error(`the server gave no position for event ${recorded.id}`);
  return { commit: position.commit, prepare: position.prepare };
}

/** Returns metadata that is ours and whole; undefined for any other. */
function parseMetadata(metadata: unknown): Metadata | undefined {
  if (!isObject(metadata)) return undefined;
  const { actor, commandId, causationId } = metadata;
  const isWhole =
    isCount(metadata['accountId']) &&
    isObject(actor) &&
    isCount(actor['id']) &&
    [actor['type'], metadata['channel'], metadata['requestId']].every(isText) &&
    [actor['name'], commandId, causationId].every((id) => id === undefined || isText(id)) &&
    [metadata['occurredAt'], metadata['recordedAt']].every(isTime) &&
    isCount(metadata['schemaVersion']) &&
    metadata['schemaVersion'] > 0 &&
    isText(metadata['hash']) &&
    HASH.test(metadata['hash']);
  return isWhole ? (metadata as Metadata) : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Uint8Array)
  );
}

const isText = (value: unknown): value is string => typeof value === 'string';

const isCount = (value: unknown): value is number =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;

const isTime = (value: unknown): boolean =>
  isText(value) && TIME.test(value) && !Number.isNaN(Date.parse(value));
