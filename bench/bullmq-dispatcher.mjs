import { Worker } from 'bullmq';
import { QUEUE } from './bullmq-settings.mjs';
import { configured, poster } from './peer-post.mjs';

const { port, endpoints, concurrency } = await configured();
const post = poster(endpoints);
const worker = new Worker(QUEUE, (job) => post(job.data), {
  connection: { host: '127.0.0.1', port, maxRetriesPerRequest: null },
  concurrency,
});
worker.on('error', (error) => console.error(`bullmq: ${error.message}`));
await worker.waitUntilReady();
process.send({ ready: true });
