import {
  toCommitArguments,
  toPreconditionArgument,
  toRecordArguments,
  type PreparedWrite,
} from './commit-arguments.js';
import type { Commit, Precondition } from '../port/event-store.js';

type Statement = { name: string; text: string };

/** A statement, and its variants for preconditions on the rows of some tables. */
type Texts = {
  plain: Statement;
  /** @param preconditions one of each table */
  checked: (preconditions: Precondition[]) => string;
  /** The variants by the names of the tables. */
  byTables: Map<string, Statement>;
};

const compareSql = (now: string, expected: string): string =>
  `coalesce(${now} = ${expected}, false)`;

const RECORD_CALL = `es.record($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`;

/** Commits to one existing stream and its read model: a quarter less work for PostgreSQL. */
const RECORD: Texts = {
  plain: { name: 'es_record', text: `select ${RECORD_CALL} as won` },
  checked: (preconditions) => {
    const conditions = preconditions.map(({ extraColumn }) =>
      compareSql(extraColumn('$9', '$2'), '$13::jsonb'),
    );
    return `select case when ${conditions.join(' and ')} then ${RECORD_CALL} else false end as won`;
  },
  byTables: new Map(),
};

const COMMIT: Texts = {
  plain: { name: 'es_commit', text: 'select es.commit($1, $2, $3, $4, $5, $6, $7, $8) as won' },
  // Key by key: as a join, a plan that is made while there are few rows reads all of them.
  checked: (preconditions) => {
    const cases = preconditions.map(
      ({ table, extraColumn }) =>
        `when '${table}' then ${compareSql(extraColumn('x.i', 'x.a'), 'x.j')}`,
    );
    return `
      with changed as materialized (
        select array_agg(x.s) as streams
        from jsonb_to_recordset($9::jsonb) as x(s text, t text, a bigint, i bigint, j jsonb)
        where not case x.t ${cases.join(' ')} else false end
      ), kept as materialized (
        select case
          when streams is null then $1::jsonb
          when not $7::boolean then (
            select jsonb_agg(h) from jsonb_array_elements($1::jsonb) as h where h ->> 's' <> all (streams))
        end as heads
        from changed
      )
      select case when heads is null then '{}' else es.commit(heads, $2, $3, $4, $5, $6, $7, $8) end as won
      from kept`;
  },
  byTables: new Map(),
};

/**
 * The result of such a statement.
 * @property won lists the streams that were where they were expected, and whose preconditions held; of one stream, tells
 *   whether it was
 */
export type CommitRow = { won: string[] | boolean };

/**
 * Creates the statement that records these commits.
 * @param atomic nothing is written unless everything is
 */
export function createCommitStatement(
  commits: Commit[],
  prepared: PreparedWrite[][],
  atomic: boolean,
): Statement & { values: unknown[] } {
  const [commit, ...others] = commits;
  if (commit && others.length === 0 && atomic) {
    const values = toRecordArguments(commit, prepared[0] ?? []);
    if (values) {
      const precondition = commit.writes[0]?.precondition;
      if (precondition) values.push(JSON.stringify(precondition.expectedValues));
      return { ...getStatement(RECORD, precondition ? [precondition] : []), values };
    }
  }
  const byTable = new Map<string, Precondition>();
  for (const { writes } of commits) {
    for (const { precondition } of writes) {
      if (precondition) byTable.set(precondition.table, precondition);
    }
  }
  const values = toCommitArguments(commits, prepared, atomic);
  if (byTable.size > 0) values.push(toPreconditionArgument(commits));
  const preconditions = [...byTable.values()].sort((a, b) => (a.table < b.table ? -1 : 1));
  return { ...getStatement(COMMIT, preconditions), values };
}

/**
 * Returns the statement for preconditions on these tables. Each text keeps one name: PostgreSQL caches its plan by the
 * name.
 */
function getStatement(
  { plain, checked, byTables }: Texts,
  preconditions: Precondition[],
): Statement {
  const [first, ...others] = preconditions;
  if (!first) return plain;
  let tables = first.table;
  for (const { table } of others) tables += `_${table}`;
  let text = byTables.get(tables);
  if (!text) {
    text = { name: `${plain.name}_${tables}`, text: checked(preconditions) };
    byTables.set(tables, text);
  }
  return text;
}
