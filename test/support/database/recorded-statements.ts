import type { Pool } from 'pg';
import type { TestDatabase } from './database.js';

type Statement = { text?: string; values?: unknown[] };

/** Records the statements of every connection of a pool, so that a test can explain what a request runs. */
export class RecordedStatements {
  private statements: Statement[] = [];

  constructor(pool: Pool) {
    const recorded = new WeakSet();
    pool.on('acquire', (client) => {
      if (recorded.has(client)) return;
      recorded.add(client);
      const send = client.query.bind(client) as (...parameters: unknown[]) => unknown;
      client.query = ((...parameters: unknown[]) => {
        this.statements.push(parameters[0] as Statement);
        return send(...parameters);
      }) as typeof client.query;
    });
  }

  clear(): void {
    this.statements = [];
  }

  /** Runs the recorded statements that match once more, and returns the plan of each. */
  async explain(database: Pick<TestDatabase, 'query'>, pattern: RegExp): Promise<string[]> {
    const matching = this.statements.filter(({ text = '' }) => pattern.test(text));
    const plans: string[] = [];
    for (const { text = '', values = [] } of matching) {
      const { rows } = await database.query<{ 'QUERY PLAN': string }>(
        `explain (analyze, costs off, timing off, summary off, buffers off) ${text}`,
        values,
      );
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'));
    }
    return plans;
  }
}
