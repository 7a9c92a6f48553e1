export const INITIAL_BATCH_SIZE = 32;
/** Rendering more at once would block the process for too long. */
const MAX_BATCH_SIZE = 250;
const MAX_BATCH_BYTES = 1024 * 1024;

/** Chooses how many events to render at once, by the sizes of the bodies that were rendered before. */
export function chooseBatchSize(bodies: unknown[]): number {
  const sizes = bodies.map((body) => (Buffer.isBuffer(body) ? body.length : 0));
  const average = sizes.reduce((sum, size) => sum + size, 0) / sizes.length;
  const count = Math.floor(MAX_BATCH_BYTES / Math.max(1, average));
  return Math.max(1, Math.min(MAX_BATCH_SIZE, count));
}
