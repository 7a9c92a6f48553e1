import type { DomainEvent } from '#kernel/aggregate.js';
import { toRecorded } from '../port/codec.js';
import type { ReadModelUpdate } from '../postgres/commit-arguments.js';
import type { Head, StoredEvent } from '../port/event-store.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import type { AnyReadModel } from '../read-models/read-models.js';

/** A claim and the revision of its stream after the command that made it. `value` in hex. */
export type StreamClaim = { accountId: number; kind: string; value: string; revision: number };

/** How far the fold of a stream has got. */
export type StreamProgress = {
  readModel: AnyReadModel;
  stream: string;
  id: number;
  head: Head | null;
  state: { accountId: number } | undefined;
  /** By account, kind and value. */
  claims: Map<string, StreamClaim>;
  /** Claims that the stream held and has released since the progress began. */
  releasedClaims: Map<string, StreamClaim>;
  /** Personal data cannot be read any more, so the values that were claimed since are not known. */
  isErased: boolean;
  /** The claims of the command whose events were followed last. */
  command: { key: string; claims: StreamClaim[] };
};

export function createProgress(
  readModel: AnyReadModel,
  stream: string,
  id: number,
): StreamProgress {
  return {
    readModel,
    stream,
    id,
    head: null,
    state: undefined,
    claims: new Map(),
    releasedClaims: new Map(),
    isErased: false,
    command: { key: '', claims: [] },
  };
}

/**
 * Follows the next event of the stream. Those that were followed before are passed over.
 * @param opened the event with its personal data decrypted
 * @throws an Error that says what is wrong with the stream
 */
export function applyEvent(
  progress: StreamProgress,
  stored: StoredEvent,
  opened: StoredEvent,
  keys: PersonalKeys,
): void {
  const { readModel, stream, head, claims } = progress;
  const next = head === null ? 0 : head.revision + 1;
  const { revision, meta } = stored;
  if (revision < next) return;
  if (revision > next) throw new Error(`${stream}: event ${next} is missing`);
  const recordedEvent = toRecorded<DomainEvent>(readModel.aggregate, opened);
  if (stored.data['personal'] != null && opened.data['personal'] === null) progress.isErased = true;

  const commandKey = `${meta.requestId} ${meta.recordedAt}`;
  if (progress.command.key !== commandKey) progress.command = { key: commandKey, claims: [] };
  for (const claim of progress.command.claims) claim.revision = revision;
  const changes = readModel.getClaimChanges?.(recordedEvent, progress.state) ?? {};
  if (changes.releasesAll) {
    for (const [name, claim] of claims) progress.releasedClaims.set(name, claim);
    claims.clear();
    progress.command.claims = [];
    progress.isErased = false;
  }
  for (const { kind, value } of changes.releases ?? []) {
    const [name, claim] = toStreamClaim(keys, stored, kind, value);
    claims.delete(name);
    progress.releasedClaims.set(name, claim);
  }
  for (const { kind, value } of changes.claims ?? []) {
    const [name, claim] = toStreamClaim(keys, stored, kind, value);
    claims.set(name, claim);
    progress.releasedClaims.delete(name);
    progress.command.claims.push(claim);
  }
  progress.state = readModel.aggregate.evolve(progress.state, recordedEvent);
  progress.head = { revision, hash: stored.hash };
}

/** Its row as it is to be written; undefined before the first event. */
export function toReadModelUpdate({
  readModel,
  stream,
  id,
  head,
  state,
}: StreamProgress): ReadModelUpdate | undefined {
  if (!head || !state) return undefined;
  const row = {
    table: readModel.table,
    id,
    projectionVersion: readModel.aggregate.projectionVersion,
    state,
  };
  return { accountId: state.accountId, stream, head, row };
}

function toStreamClaim(
  keys: PersonalKeys,
  { stream, revision, meta: { accountId } }: StoredEvent,
  kind: string,
  plain: string,
): [name: string, StreamClaim] {
  const claim = keys.createClaim(accountId, kind, plain, stream);
  const value = claim.value.toString('hex');
  return [`${accountId} ${claim.kind} ${value}`, { accountId, kind: claim.kind, value, revision }];
}
