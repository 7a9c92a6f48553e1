import type { VerificationResult } from '#platform/event-store/verification/verification.js';
import { describeUnrepaired } from './replay.js';

const EXAMPLES = 10;

/** What a table was found to have, with examples of what differs. */
type TableResult = { rowCount: number; differenceCount: number; examples: string[] };

/** Counts the differences of each table, and prints them with examples. */
export class RebuildResults {
  isChanged = false;
  unrepaired = 0;
  private outdated = 0;
  private readonly tables = new Map<string, TableResult>();

  add(table: string, rowCount: number, differences: string[]): void {
    const result = this.tables.get(table) ?? { rowCount: 0, differenceCount: 0, examples: [] };
    this.tables.set(table, result);
    result.rowCount += rowCount;
    result.differenceCount += differences.length;
    result.examples.push(...differences.slice(0, EXAMPLES - result.examples.length));
  }

  addRecords(
    {
      streams = 0,
      differences = [],
      outdated = 0,
      repaired = 0,
      unrepaired = 0,
    }: Partial<VerificationResult>,
    table: string | undefined,
  ): void {
    if (table !== undefined) this.add(table, streams, []);
    for (const { table: name, stream, problem } of differences)
      this.add(name, 0, [`${stream}: ${problem}`]);
    this.outdated += outdated;
    this.unrepaired += unrepaired;
    if (repaired > 0) this.isChanged = true;
  }

  get differenceCount(): number {
    return [...this.tables.values()].reduce((sum, { differenceCount: n }) => sum + n, 0);
  }

  print(): void {
    const tables = [...this.tables].sort(([, a], [, b]) => b.differenceCount - a.differenceCount);
    for (const [table, { rowCount, differenceCount, examples }] of tables) {
      if (differenceCount === 0) {
        console.log(`${table}: ${rowCount} rows, no difference`);
        continue;
      }
      console.log(`${table}: ${differenceCount} differences`);
      for (const example of examples) console.log(`  ${example}`);
      if (differenceCount > examples.length)
        console.log(`  and ${differenceCount - examples.length} more`);
    }
    if (this.outdated > 0)
      console.log(`${this.outdated} read models were of an older projection version`);
    const { differenceCount: count, unrepaired } = this;
    const summary = count === 0 ? 'no difference' : `${count} differences`;
    const change = unrepaired > 0 ? 'some records were repaired' : 'the tables were repaired';
    console.log(`${summary}; ${this.isChanged ? change : 'nothing was changed'}`);
    if (unrepaired > 0) console.log(describeUnrepaired(unrepaired));
  }
}
