import { randomBytes } from 'node:crypto';
import { configured } from './peer-post.mjs';

const BATCH = 1_000;

/**
 * Shared by both peers' planters: deliveries with the body that Inkpad sent, spread over the
 * endpoints in turn.
 * @param {(config: object) => Promise<{
 *   add: (deliveries: object[]) => Promise<unknown>,
 *   unfinished: () => Promise<number>,
 *   failed: () => Promise<number>,
 * }>} open
 */
export async function plantWith(open) {
  const config = await configured();
  const sample = JSON.parse(config.sample);
  const spread = config.endpoints.length - config.apart;
  const queue = await open(config);
  let plantedCount = 0;

  const delivery = (endpoint) => ({
    endpoint: endpoint ?? plantedCount++ % spread,
    event: { ...sample, id: `evt_${randomBytes(13).toString('hex').toUpperCase()}` },
  });
  const act = {
    async plant({ count, endpoint }) {
      for (let left = count; left > 0; left -= BATCH) {
        const size = Math.min(left, BATCH);
        await queue.add(Array.from({ length: size }, () => delivery(endpoint)));
      }
      return {};
    },
    async single() {
      const one = delivery();
      const startedAt = performance.timeOrigin + performance.now();
      await queue.add([one]);
      return {
        endpoint: one.endpoint,
        startedAt,
        done: performance.timeOrigin + performance.now(),
      };
    },
    state: async () => ({ unfinished: await queue.unfinished(), failed: await queue.failed() }),
  };
  process.on('message', ({ ask, tag, ...rest }) => {
    // A rejection ends the process, which the bench reports as a failure.
    void act[ask](rest).then((result) => process.send({ tag, ...result }));
  });
  process.send({ ready: true });
}
