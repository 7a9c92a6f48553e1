import type { Commit, Erasure, Head, ReadModelWrite, Write } from '../port/event-store.js';
import { hashChain } from '../port/hash-chain.js';
import { toResponseArgument } from '../commands/stored-responses.js';

/** A write with the head of its stream after each of its events. */
export type PreparedWrite = { write: Write; heads: Head[] };

export function prepareWrites({ writes }: { writes: Write[] }): PreparedWrite[] {
  return writes.map((write) => ({
    write,
    heads: hashChain(write.stream, write.expected, write.events),
  }));
}

export function getLastHead({ heads }: PreparedWrite): Head {
  const last = heads.at(-1);
  if (last === undefined) throw new Error('a write has at least one event');
  return last;
}

export function getHeads(commit: Commit): Head[] {
  return prepareWrites(commit).map(getLastHead);
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
    for (const one of writes) {
      const { stream: s, expected, row } = one.write;
      const head = getLastHead(one);
      const x = expected?.revision ?? -1;
      heads.push({ s, a, x, p: expected?.hash ?? null, n: one.write.events.length, h: head.hash });
      one.write.events.forEach((event, e) => {
        events.push({
          s,
          r: one.heads[e]?.revision,
          id: event.id,
          t: event.type,
          v: event.version,
          a,
          d: event.data,
          m: event.meta,
          h: one.heads[e]?.hash,
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
  const { heads, write } = prepared;
  const { stream, expected, events, row } = write;
  if (!expected || !row) return undefined;
  return [
    stream,
    accountId,
    expected.revision,
    Buffer.from(expected.hash, 'hex'),
    Buffer.from(getLastHead(prepared).hash, 'hex'),
    events.map(({ id }) => id),
    events.map(({ type }) => type),
    events.map(({ version }) => version),
    events.map(({ data }) => JSON.stringify(data)),
    events.map(({ meta }) => JSON.stringify(meta)),
    heads.map(({ hash }) => hash),
    events.map(({ meta }) => meta.recordedAt),
    claims?.length ? toClaimArgument(commit, claims) : null,
    row.table,
    row.id,
    row.projectionVersion,
    JSON.stringify(row.state),
    toResponseArgument(responses),
  ];
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

/**
 * Creates the statement that destroys the keys of people and releases their claims. Of people whose key was renewed it
 * destroys only the former key.
 */
export function createEraseStatement(
  accountId: number,
  erasures: Erasure[],
): { text: string; values: unknown[] } {
  const subjects = erasures.filter(({ renewed }) => !renewed);
  return {
    text: 'select es.erase($1, $2, $3), es.destroy_previous_keys($4)',
    values: [
      accountId,
      subjects.map(({ subjectId }) => subjectId),
      subjects.map(({ stream }) => stream),
      erasures.flatMap(({ subjectId, renewed }) => (renewed ? [subjectId] : [])),
    ],
  };
}

/** Builds the argument of `es.take_claims`, each claim with the revision at which its stream got it. */
export function toClaimArgument(commit: Commit, claims: Commit['claims']): string | null {
  return renderClaims(toClaimRows(commit, claims));
}

function renderClaims(rows: object[]): string | null {
  return rows.length > 0 ? JSON.stringify(rows) : null;
}

function toClaimRows(commit: Commit, claims: Commit['claims'] = []): object[] {
  return claims.map((claim) => ({
    a: commit.accountId,
    k: claim.kind,
    v: claim.value.toString('hex'),
    s: claim.stream,
    r: getLastRevision(commit, claim.stream),
  }));
}

function getLastRevision({ writes }: Commit, stream: string): number {
  const write = writes.find((one) => one.stream === stream);
  return write ? (write.expected?.revision ?? -1) + write.events.length : 0;
}
