import { randomUUID } from 'node:crypto';
import { EventStoreDbAppender } from '#platform/event-store/eventstoredb/eventstoredb-appender.js';
import { EventStoreDbConnection } from '#platform/event-store/eventstoredb/eventstoredb-connection.js';

/**
 * A process that appends more at once than its connection has room for, when it is told to go on (SIGCONT): node
 * saturated-connection.mjs URL COUNT BYTES
 */
const [url = '', count, bytes] = process.argv.slice(2);
const connection = new EventStoreDbConnection(url);
const appender = new EventStoreDbAppender(connection, { getStreamName: (stream) => stream });

const append = (stream) => {
  const data = { text: 'x'.repeat(Number(bytes)) };
  const event = { id: randomUUID(), type: 'Said', version: 1, data, meta: {} };
  return appender.append({ stream, expected: null, events: [event] });
};

process.once('SIGCONT', async () => {
  const streams = Array.from({ length: Number(count) }, (_, i) => `said-${i + 1}`);
  const appended = await Promise.allSettled(streams.map(append));
  console.log(`${appended.filter(({ status }) => status === 'fulfilled').length} appended`);
  await connection.dispose();
});
await append('said-0');
console.log('connected');
