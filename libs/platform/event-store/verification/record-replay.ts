import type { StoredEvent } from '../port/event-store.js';
import { toStreamName, type AnyReadModel } from '../read-models/read-models.js';
import { createReplay, type StreamReplay } from './stream-replay.js';

/** A commit to EventStoreDB takes its claims before the stream exists, and releases claims after it has written. */
export const NAMED_IN_INTENTS = `
  select w ->> 'stream' as stream_id
  from es.intents i, json_array_elements(i.content -> 'writes') w`;

/** Renders columns that show the claims of a stream. @param stream SQL for its name */
export const renderClaimColumns = (stream: string): string => `
  (select string_agg(c.account_id || ' ' || c.kind || ' ' || encode(c.value, 'hex') || ' ' || c.revision, ',')
   from es.claims c where c.stream_id = ${stream}) as claims,
  ${stream} in (${NAMED_IN_INTENTS}) as pending`;

/**
 * The claims of a stream, each with its revision, separated by commas.
 * @property pending whether a commit to the stream is in progress, so that they are about to change
 */
export type ClaimColumns = { claims: string | null; pending: boolean };

/** Of a read model that is missing, `revision` is -1. */
export type Row = {
  id: number;
  account_id: number;
  revision: number;
  hash: Buffer;
  projection_version: number;
  state: object;
  /** Whether the columns that are derived from the state are what it says. */
  has_right_columns: boolean;
  /** The last revision of the stream at the same moment, where PostgreSQL has the events. */
  last_revision: number | null;
} & ClaimColumns;

/** A record and the replay of its stream. */
export type RecordReplay = {
  row: Row;
  /** The state and claims after `applyTo`. */
  replay: StreamReplay;
  /** The last event to apply: the read model's, or that of the stream when it is missing or behind. */
  applyTo: number;
  /** The last event of the stream, which may come after `applyTo`. */
  last: StoredEvent | undefined;
  isBroken: boolean;
};

export function createRecordReplay(
  readModel: AnyReadModel,
  row: Row,
): [stream: string, record: RecordReplay] {
  const stream = toStreamName(readModel, row.id);
  const replay = createReplay(readModel, stream, row.id);
  const applyTo = isMissing(row)
    ? (row.last_revision ?? Number.MAX_SAFE_INTEGER)
    : Math.max(row.revision, row.last_revision ?? 0);
  return [stream, { row, replay, applyTo, last: undefined, isBroken: false }];
}

export function isMissing({ revision }: Pick<Row, 'revision'>): boolean {
  return revision === -1;
}

/** Tells whether a read model is of another projection version. */
export function isOutdated({ row, replay: { readModel } }: RecordReplay): boolean {
  return !isMissing(row) && row.projection_version !== readModel.projectionVersion;
}

/** Parses `ClaimColumns.claims`. @returns the revision of each claim, by account, kind and value */
export function parseClaims(claims: string | null): Map<string, number> {
  const revisions = new Map<string, number>();
  for (const claim of claims?.split(',') ?? []) {
    const end = claim.lastIndexOf(' ');
    revisions.set(claim.slice(0, end), Number(claim.slice(end + 1)));
  }
  return revisions;
}
