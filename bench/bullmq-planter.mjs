import { Queue } from 'bullmq';
import { plantWith } from './peer-planter.mjs';
import { JOB_OPTIONS, QUEUE } from './bullmq-settings.mjs';

await plantWith(async ({ port }) => {
  const queue = new Queue(QUEUE, { connection: { host: '127.0.0.1', port } });
  return {
    add: (deliveries) =>
      queue.addBulk(deliveries.map((data) => ({ name: 'deliver', data, opts: JOB_OPTIONS }))),
    async unfinished() {
      const counts = await queue.getJobCounts('wait', 'active', 'delayed', 'paused');
      return Object.values(counts).reduce((sum, count) => sum + count, 0);
    },
    failed: () => queue.getFailedCount(),
  };
});
