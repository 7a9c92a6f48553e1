import type { Erasure } from '../port/event-store.js';

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
