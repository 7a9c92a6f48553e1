import type { Commit, Head, ReadModelWrite, Write } from '../port/event-store.js';
import { hashChain } from '../port/hash-chain.js';
import { toResponseArgument } from '../commands/stored-responses.js';

/** Begins a text[] of one dimension: its dimensions, nulls, type (25), number of elements and first index. */
const ARRAY_HEADER = Buffer.from('0000000100000000000000190000000000000001', 'hex');
const COUNT_AT = 12;
const LENGTH_BYTES = 4;

/** A write with the head of its stream after each of its events, and after the last. */
export type PreparedWrite = { write: Write; heads: Head[]; head: Head };

/** @throws Error for a write without events */
export function prepareWrites({ writes }: { writes: Write[] }): PreparedWrite[] {
  const prepared: PreparedWrite[] = [];
  for (const write of writes) {
    const heads = hashChain(write.stream, write.expected, write.events);
    const head = heads.at(-1);
    if (!head) throw new Error('an empty append is refused');
    prepared.push({ write, heads, head });
  }
  return prepared;
}

/** Returns the heads after a commit. */
export function getHeads(prepared: PreparedWrite[]): Head[] {
  const heads: Head[] = [];
  for (const { head } of prepared) heads.push(head);
  return heads;
}

/** Builds the arguments of `es.commit`. The keys are short because the hot path parses them twice. */
export function toCommitArguments(
  commits: Commit[],
  prepared: PreparedWrite[][],
  atomic: boolean,
): unknown[] {
  const heads: object[] = [];
  const events: object[] = [];
  const rows: ReadModelUpdate[] = [];
  prepared.forEach((writes, i) => {
    const a = commits[i]?.accountId ?? 0;
    for (const streamWrite of writes) {
      const { stream: s, expected, row } = streamWrite.write;
      const { head } = streamWrite;
      heads.push({ s, x: expected?.revision ?? -1, p: expected?.hash ?? null });
      streamWrite.write.events.forEach((event, e) => {
        events.push({
          s,
          r: streamWrite.heads[e]?.revision,
          id: event.id,
          t: event.type,
          v: event.version,
          a,
          d: event.data,
          m: event.meta,
          h: streamWrite.heads[e]?.hash,
          at: event.meta.recordedAt,
        });
      });
      if (row) rows.push({ accountId: a, stream: s, head, row });
    }
  });
  const [tables, rowList] = toReadModelArguments(rows);
  return [
    JSON.stringify(heads),
    JSON.stringify(events),
    tables,
    rowList,
    renderClaims(commits.flatMap((commit) => toClaimRows(commit, commit.claims))),
    renderClaims(commits.flatMap((commit) => toClaimRows(commit, commit.releases))),
    atomic,
    toResponseArgument(commits.flatMap(({ responses = [] }) => responses)),
  ];
}

/** Builds the argument that names the streams that were decided on something that may have changed. */
export function toPreconditionArgument(commits: Commit[]): string {
  return JSON.stringify(
    commits.flatMap(({ accountId: a, writes }) =>
      writes.flatMap(({ stream: s, precondition }) =>
        precondition
          ? [{ s, t: precondition.table, a, i: precondition.id, j: precondition.expectedValues }]
          : [],
      ),
    ),
  );
}

/** Builds the arguments of `es.record`; undefined for commits that need `es.commit`. */
export function toRecordArguments(
  commit: Commit,
  [prepared]: PreparedWrite[],
): unknown[] | undefined {
  const { accountId, writes, claims, releases, responses } = commit;
  if (!prepared || writes.length !== 1 || releases?.length) return undefined;
  const { heads, head, write } = prepared;
  const { stream, expected, events, row } = write;
  if (!expected || !row) return undefined;
  const fields: string[] = [];
  let i = 0;
  for (const { id, type, version, data, meta } of events) {
    const hash = heads[i++]?.hash ?? '';
    const [dataJson, metaJson] = [JSON.stringify(data), JSON.stringify(meta)];
    fields.push(id, type, String(version), dataJson, metaJson, hash, meta.recordedAt);
  }
  return [
    stream,
    accountId,
    expected.revision,
    Buffer.from(expected.hash, 'hex'),
    Buffer.from(head.hash, 'hex'),
    encodeTextArray(fields),
    claims?.length ? toClaimArgument(commit, claims) : null,
    row.table,
    row.id,
    row.projectionVersion,
    JSON.stringify(row.state),
    responses?.length ? toResponseArgument(responses) : null,
  ];
}

/**
 * Encodes a text[] in PostgreSQL's binary form. In an array that is sent as text, each quote of JSON is escaped, which
 * took more memory than all other arguments.
 */
function encodeTextArray(texts: string[]): Buffer {
  let size = ARRAY_HEADER.length;
  for (const text of texts) size += LENGTH_BYTES + Buffer.byteLength(text);
  const buffer = Buffer.allocUnsafe(size);
  ARRAY_HEADER.copy(buffer);
  buffer.writeInt32BE(texts.length, COUNT_AT);
  let at = ARRAY_HEADER.length;
  for (const text of texts) {
    const length = buffer.write(text, at + LENGTH_BYTES);
    at = buffer.writeInt32BE(length, at) + length;
  }
  return buffer;
}

/** A read model and the head of its stream after its last event. */
export type ReadModelUpdate = {
  accountId: number;
  stream: string;
  head: Head;
  row: ReadModelWrite;
};

/** Builds the first two arguments of `es.write_read_models`: tables and rows. */
export function toReadModelArguments(updates: ReadModelUpdate[]): [string[], string] {
  const tables = new Set(updates.map(({ row }) => row.table));
  const list = updates.map(({ accountId, stream, head, row }) => ({
    t: row.table,
    s: stream,
    id: row.id,
    a: accountId,
    r: head.revision,
    h: head.hash,
    v: row.projectionVersion,
    st: row.state,
  }));
  return [[...tables], JSON.stringify(list)];
}

/** A claim in the argument of `es.take_claims`: account, kind, value in hex, stream and revision. */
export type ClaimRow = { a: number; k: string; v: string; s: string; r: number };

/** Builds the argument of `es.take_claims`. */
export function toClaimArgument(commit: Commit, claims: Commit['claims']): string | null {
  return renderClaims(toClaimRows(commit, claims));
}

function renderClaims(rows: ClaimRow[]): string | null {
  return rows.length > 0 ? JSON.stringify(rows) : null;
}

/** Lists claims, each with the revision at which its stream got it. */
function toClaimRows({ accountId, writes }: Commit, claims: Commit['claims'] = []): ClaimRow[] {
  const rows: ClaimRow[] = [];
  for (const { kind, value, stream } of claims) {
    let revision = 0;
    for (const { stream: written, expected, events } of writes) {
      if (written === stream) revision = (expected?.revision ?? -1) + events.length;
    }
    rows.push({ a: accountId, k: kind, v: value.toString('hex'), s: stream, r: revision });
  }
  return rows;
}
