import { UnknownOutcomeError } from '#kernel/errors.js';
import { isDatabaseAway } from '#database/connection.js';

const PATIENCE_MS = 30_000;
const AGAIN_MS = 200;

/**
 * Reads the answer of a write that is already committed. From then on no failure may be reported:
 * clients resend after any 5xx (contract section 1), so a lost database is waited for.
 * @throws UnknownOutcomeError when it does not come back in time: the caller gets no answer at all
 */
export async function afterCommit<R>(read: () => Promise<R>): Promise<R> {
  for (const deadline = Date.now() + PATIENCE_MS; ;) {
    try {
      return await read();
    } catch (error) {
      if (!isDatabaseAway(error)) throw error;
      if (Date.now() > deadline) {
        throw new UnknownOutcomeError('a committed write cannot be read back', { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}
