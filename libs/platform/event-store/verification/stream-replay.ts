import { getCommandKey } from '#platform/kernel/aggregate.js';
import { DamagedHistoryError } from '#platform/kernel/errors.js';
import type { ReadModelUpdate } from '../postgres/commit-arguments.js';
import type { Head, StoredEvent } from '../port/event-store.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import { foldEvent, type OpenedEvent } from '../read-models/fold-stream.js';
import type { AnyReadModel } from '../read-models/read-models.js';

/** A claim and the revision of its stream after the command that made it. `value` in hex. */
export type StreamClaim = { accountId: number; kind: string; value: string; revision: number };

/** The state and the claims of a stream after the events that were applied so far. */
export type StreamReplay = {
  readModel: AnyReadModel;
  stream: string;
  id: number;
  head: Head | null;
  state: { accountId: number } | undefined;
  /** By account, kind and value. */
  claims: Map<string, StreamClaim>;
  /** Whether personal data cannot be decrypted any more, so the values claimed since are not known. */
  isErased: boolean;
  /** The claims of the command whose events were applied last. */
  command: { key: string; claims: StreamClaim[] };
};

export function createReplay(readModel: AnyReadModel, stream: string, id: number): StreamReplay {
  return {
    readModel,
    stream,
    id,
    head: null,
    state: undefined,
    claims: new Map(),
    isErased: false,
    command: { key: '', claims: [] },
  };
}

/**
 * Applies the next event of the stream. Skips events that were applied before.
 * @throws DamagedHistoryError when an event before it is missing
 */
export function applyEvent(
  replay: StreamReplay,
  { stored, opened }: OpenedEvent,
  keys: PersonalKeys,
): void {
  const { readModel, stream, head, state: before, claims } = replay;
  const next = head === null ? 0 : head.revision + 1;
  const { revision, meta } = stored;
  if (revision < next) return;
  if (revision > next) throw new DamagedHistoryError('past', `${stream}: event ${next} is missing`);
  const { event, state } = foldEvent(readModel, before, opened);
  if (stored.data['personal'] != null && opened.data['personal'] === null) replay.isErased = true;

  const commandKey = getCommandKey(meta);
  if (replay.command.key !== commandKey) replay.command = { key: commandKey, claims: [] };
  for (const claim of replay.command.claims) claim.revision = revision;
  const changes = readModel.getClaimChanges?.(event, before) ?? {};
  if (changes.releasesAll) {
    claims.clear();
    replay.command.claims = [];
    replay.isErased = false;
  }
  for (const { kind, value } of changes.releases ?? []) {
    const [name] = toStreamClaim(keys, stored, kind, value);
    claims.delete(name);
  }
  for (const { kind, value } of changes.claims ?? []) {
    const [name, claim] = toStreamClaim(keys, stored, kind, value);
    claims.set(name, claim);
    replay.command.claims.push(claim);
  }
  replay.state = state;
  replay.head = { revision, hash: stored.hash };
}

/** Creates the write of its read model; undefined before the first event. */
export function toReadModelUpdate({
  readModel,
  stream,
  id,
  head,
  state,
}: StreamReplay): ReadModelUpdate | undefined {
  if (!head || !state) return undefined;
  const row = {
    table: readModel.table,
    id,
    projectionVersion: readModel.projectionVersion,
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
