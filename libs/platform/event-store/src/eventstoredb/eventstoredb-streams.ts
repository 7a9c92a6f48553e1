import type { JSONRecordedEvent } from '@eventstore/db-client';
import type { EventMeta } from '#kernel/aggregate.js';
import type { JsonObject, Position, StoredEvent } from '../port/event-store.js';

type Metadata = EventMeta & { schemaVersion: number; hash: string };

/** Tells our streams from others on the same server, and converts the server's events to stored events. */
export class OwnStreams {
  /** Prefixes of our streams' names, for the server's filters. */
  readonly prefixes: string[];

  /**
   * @param prefix in front of every stream's name
   * @param beginnings how our streams' names begin; other streams on the server are not read
   */
  constructor(
    private readonly prefix: string,
    beginnings: string[],
  ) {
    this.prefixes = beginnings.map((beginning) => prefix + beginning);
  }

  getStreamName(stream: string): string {
    return this.prefix + stream;
  }

  isOwn(streamName: string): boolean {
    return this.prefixes.some((prefix) => streamName.startsWith(prefix));
  }

  /** Converts an event of the server; undefined for an event of a stream that is not ours. */
  toStoredEvent(recorded: JSONRecordedEvent | undefined): StoredEvent | undefined {
    if (!recorded || !this.isOwn(recorded.streamId)) return undefined;
    const { schemaVersion, hash, ...meta } = recorded.metadata as Metadata;
    return {
      id: recorded.id,
      stream: recorded.streamId.slice(this.prefix.length),
      revision: Number(recorded.revision),
      type: recorded.type,
      version: schemaVersion,
      data: recorded.data as JsonObject,
      meta,
      hash,
      position: getPosition(recorded),
    };
  }
}

export function getPosition(recorded: JSONRecordedEvent): Position {
  const { position } = recorded as { position?: Position };
  if (!position) throw new Error(`the server gave no position for event ${recorded.id}`);
  return { commit: position.commit, prepare: position.prepare };
}
