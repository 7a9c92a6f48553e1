import type { DomainEvent } from '#kernel/aggregate.js';
import { recorded } from '../port/codec.js';
import type { PlacedRow } from '../postgres/commit-arguments.js';
import type { Head, StoredEvent } from '../port/event-store.js';
import type { PersonalKeys } from '../personal-keys/personal-keys.js';
import type { RowTable } from '../read-models/read-models.js';

export type AnyTable = RowTable<{ accountId: number }, DomainEvent>;

/** A claim and the revision of its stream after the command that made it. `value` in hex. */
export type HeldClaim = { accountId: number; kind: string; value: string; revision: number };

/** How far the fold of a stream has got. */
export type StreamProgress = {
  rows: AnyTable;
  stream: string;
  id: number;
  head: Head | null;
  state: { accountId: number } | undefined;
  /** By account, kind and value. */
  claims: Map<string, HeldClaim>;
  /** Claims that the stream held and has released since the progress began. */
  released: Map<string, HeldClaim>;
  /** Personal data cannot be read any more, so the values that were claimed since are not known. */
  erased: boolean;
  /** The claims of the command whose events were followed last. */
  command: { of: string; claims: HeldClaim[] };
};

export function newProgress(rows: AnyTable, stream: string, id: number): StreamProgress {
  return {
    rows,
    stream,
    id,
    head: null,
    state: undefined,
    claims: new Map(),
    released: new Map(),
    erased: false,
    command: { of: '', claims: [] },
  };
}

/**
 * Follows the next event of the stream. Those that were followed before are passed over.
 * @param opened the event with its personal data decrypted
 * @throws an Error that says what is wrong with the stream
 */
export function follow(
  progress: StreamProgress,
  stored: StoredEvent,
  opened: StoredEvent,
  keys: PersonalKeys,
): void {
  const { rows, stream, head, claims } = progress;
  const next = head === null ? 0 : head.revision + 1;
  const { revision, meta } = stored;
  if (revision < next) return;
  if (revision > next) throw new Error(`${stream}: event ${next} is missing`);
  const fact = recorded<DomainEvent>(rows.aggregate, opened);
  if (stored.data['personal'] != null && opened.data['personal'] === null) progress.erased = true;

  const of = `${meta.requestId} ${meta.recordedAt}`;
  if (progress.command.of !== of) progress.command = { of, claims: [] };
  for (const claim of progress.command.claims) claim.revision = revision;
  const { taken = [], released = [], none } = rows.claimsOf?.(fact, progress.state) ?? {};
  if (none) {
    for (const [name, claim] of claims) progress.released.set(name, claim);
    claims.clear();
    progress.command.claims = [];
    progress.erased = false;
  }
  for (const { kind, value } of released) {
    const [name, claim] = heldClaim(keys, stored, kind, value);
    claims.delete(name);
    progress.released.set(name, claim);
  }
  for (const { kind, value } of taken) {
    const [name, claim] = heldClaim(keys, stored, kind, value);
    claims.set(name, claim);
    progress.released.delete(name);
    progress.command.claims.push(claim);
  }
  progress.state = rows.aggregate.evolve(progress.state, fact);
  progress.head = { revision, hash: stored.hash };
}

/** Its row as it is to be written; undefined before the first event. */
export function placedRow({
  rows,
  stream,
  id,
  head,
  state,
}: StreamProgress): PlacedRow | undefined {
  if (!head || !state) return undefined;
  const row = { table: rows.table, id, foldVersion: rows.aggregate.foldVersion, state };
  return { accountId: state.accountId, stream, head, row };
}

function heldClaim(
  keys: PersonalKeys,
  { stream, revision, meta: { accountId } }: StoredEvent,
  kind: string,
  plain: string,
): [name: string, HeldClaim] {
  const claim = keys.claim(accountId, kind, plain, stream);
  const value = claim.value.toString('hex');
  return [`${accountId} ${claim.kind} ${value}`, { accountId, kind: claim.kind, value, revision }];
}
