/** The position of an event in the whole log. In PostgreSQL: transaction id and sequence number. */
export type Position = { commit: bigint; prepare: bigint };

const DIGITS = 20;

/** Formats a position at a fixed width, so that positions compare as text too. */
export function formatPosition(position: Position): string {
  const pad = (n: bigint) => n.toString().padStart(DIGITS, '0');
  return `${pad(position.commit)}:${pad(position.prepare)}`;
}

/**
 * Creates SQL for the same text; `lpad` would take twice as long.
 * @param tx,pos SQL expressions
 */
export function createPositionSql(tx: string, pos: string): string {
  const pad = (n: string) => `right('${'0'.repeat(DIGITS)}' || (${n})::text, ${DIGITS})`;
  return `${pad(tx)} || ':' || ${pad(pos)}`;
}

export function parsePosition(text: string): Position {
  const [commit, prepare] = text.split(':');
  if (commit === undefined || prepare === undefined) throw new Error(`no position: ${text}`);
  return { commit: BigInt(commit), prepare: BigInt(prepare) };
}

export function isAfter(a: Position, b: Position): boolean {
  return a.commit === b.commit ? a.prepare > b.prepare : a.commit > b.commit;
}
