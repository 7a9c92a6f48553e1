import { toCommitArguments, toPreconditionArgument, type Prepared } from './commit-arguments.js';
import type { Commit, Precondition } from '../port/event-store.js';

type Statement = { name: string; text: string };

const COMMIT: Statement = {
  name: 'es_commit',
  text: 'select es.commit($1, $2, $3, $4, $5, $6, $7, $8) as won',
};

/** The statements with preconditions, by the names of the tables that these are on. */
const checkedByTables = new Map<string, Statement>();

/**
 * Creates the statement that records these commits. Its result `won` lists the streams that were where they were
 * expected, and whose preconditions held.
 * @param atomic nothing is written unless everything is
 */
export function createCommitStatement(
  commits: Commit[],
  prepared: Prepared[][],
  atomic: boolean,
): Statement & { values: unknown[] } {
  const values = toCommitArguments(commits, prepared, atomic);
  const preconditions = new Map<string, Precondition>();
  for (const { writes } of commits) {
    for (const { precondition } of writes) {
      if (precondition) preconditions.set(precondition.table, precondition);
    }
  }
  if (preconditions.size === 0) return { ...COMMIT, values };
  // One name for each text: PostgreSQL caches the plan by the name.
  const tables = [...preconditions.keys()].sort().join('_');
  let statement = checkedByTables.get(tables);
  if (!statement) {
    statement = { name: `es_commit_${tables}`, text: renderCheckedCommit(preconditions) };
    checkedByTables.set(tables, statement);
  }
  return { ...statement, values: [...values, toPreconditionArgument(commits)] };
}

/** Checks row by row: as a join, a plan that is made while there are few rows reads all of them. */
function renderCheckedCommit(preconditions: Map<string, Precondition>): string {
  const cases = [...preconditions].map(
    ([table, { extraColumn }]) =>
      `when '${table}' then coalesce(${extraColumn('x.i', 'x.a')} = x.j, false)`,
  );
  return `
    with changed as materialized (
      select array_agg(x.s) as streams
      from jsonb_to_recordset($9::jsonb) as x(s text, t text, a bigint, i bigint, j bigint)
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
}
