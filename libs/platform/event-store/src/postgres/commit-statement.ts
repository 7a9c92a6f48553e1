import {
  toCommitArguments,
  toPreconditionArgument,
  toRecordArguments,
  type PreparedWrite,
} from './commit-arguments.js';
import type { Commit, Precondition } from '../port/event-store.js';

type Statement = { name: string; text: string };

type Preconditions = Map<string, Precondition>;

/** A statement, and its variants for preconditions on the rows of some tables. */
type Texts = {
  plain: Statement;
  checked: (preconditions: Preconditions) => string;
  /** The variants by the names of the tables. */
  byTables: Map<string, Statement>;
};

const compareSql = (now: string, expected: string): string =>
  `coalesce(${now} = ${expected}, false)`;

const RECORD_CALL = `es.record($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`;

/** Commits to one existing stream and its read model: a quarter less work for PostgreSQL. */
const RECORD: Texts = {
  plain: { name: 'es_record', text: `select ${RECORD_CALL} as won` },
  checked: (preconditions) => {
    const conditions = [...preconditions.values()].map(({ extraColumn }) =>
      compareSql(extraColumn('$15', '$2'), '$19::jsonb'),
    );
    return `select case when ${conditions.join(' and ')} then ${RECORD_CALL} else '{}' end as won`;
  },
  byTables: new Map(),
};

const COMMIT: Texts = {
  plain: { name: 'es_commit', text: 'select es.commit($1, $2, $3, $4, $5, $6, $7, $8) as won' },
  // Key by key: as a join, a plan that is made while there are few rows reads all of them.
  checked: (preconditions) => {
    const cases = [...preconditions].map(
      ([table, { extraColumn }]) =>
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
 * Creates the statement that records these commits. Its result `won` lists the streams that were where they were
 * expected, and whose preconditions held.
 * @param atomic nothing is written unless everything is
 */
export function createCommitStatement(
  commits: Commit[],
  prepared: PreparedWrite[][],
  atomic: boolean,
): Statement & { values: unknown[] } {
  const preconditions: Preconditions = new Map();
  for (const { writes } of commits) {
    for (const { precondition } of writes) {
      if (precondition) preconditions.set(precondition.table, precondition);
    }
  }
  const [commit, ...others] = commits;
  const recordValues =
    commit && others.length === 0 && atomic && toRecordArguments(commit, prepared[0] ?? []);
  const statement = getStatement(recordValues ? RECORD : COMMIT, preconditions);
  const values = recordValues || toCommitArguments(commits, prepared, atomic);
  if (preconditions.size > 0) {
    const expectedValues = commit?.writes[0]?.precondition?.expectedValues;
    values.push(recordValues ? JSON.stringify(expectedValues) : toPreconditionArgument(commits));
  }
  return { ...statement, values };
}

/**
 * Returns the statement for preconditions on these tables. Each text keeps one name: PostgreSQL caches its plan by the
 * name.
 */
function getStatement(
  { plain, checked, byTables }: Texts,
  preconditions: Preconditions,
): Statement {
  if (preconditions.size === 0) return plain;
  const tables = [...preconditions.keys()].sort().join('_');
  let text = byTables.get(tables);
  if (!text) {
    text = { name: `${plain.name}_${tables}`, text: checked(preconditions) };
    byTables.set(tables, text);
  }
  return text;
}
