import { randomUUID } from 'node:crypto';
import { EventStoreDbAppender } from '../dist/libs/platform/event-store/eventstoredb/eventstoredb-appender.js';
import { EventStoreDbConnection } from '../dist/libs/platform/event-store/eventstoredb/eventstoredb-connection.js';
import { OwnStreams } from '../dist/libs/platform/event-store/eventstoredb/eventstoredb-streams.js';
import { inRandomOrder, round } from './rounds.mjs';
import { stampBody } from './stamp-body.mjs';

/**
 * Only the append of a stamping: one event to a stream, as large as that of a stamp. No HTTP, no load, no sealing, no
 * intent and no read model. No service whose commits are appends can be faster against the same server.
 */
const connection = new EventStoreDbConnection(process.env.EVENT_STORE_URL);
const appender = new EventStoreDbAppender(connection, new OwnStreams('', ['bare-']));
const sealedNote = Buffer.alloc(28 + Buffer.byteLength(JSON.stringify(stampBody.note))).toString(
  'base64',
);

async function append(stream) {
  const now = new Date().toISOString();
  const actor = { type: 'token', id: 1 };
  const meta = { accountId: 1, actor, channel: 'api', requestId: randomUUID() };
  const event = {
    id: randomUUID(),
    type: 'StampsEarned',
    version: 1,
    data: { customerId: 1, cardId: 1, stamps: stampBody.stamps, personal: sealedNote },
    meta: { ...meta, occurredAt: now, recordedAt: now },
  };
  stream.head = await appender.append({
    stream: stream.name,
    expected: stream.head,
    events: [event],
  });
}

const count = Number(process.argv[2]);
const streams = Array.from({ length: count }, (_, i) => ({ name: `bare-${i + 1}`, head: null }));
const order = inRandomOrder(streams);
const busy = new Set();

process.on('message', (task) => {
  if (task.question === 'sum')
    return process.send(
      streams.reduce((sum, { head }) => sum + (head === null ? 0 : head.revision + 1), 0),
    );
  // A rejection ends the process, which the bench reports as a failure.
  void round(task, async () => {
    let stream;
    // The last stream of one pass may be the first of the next.
    do stream = order.next().value;
    while (busy.has(stream));
    busy.add(stream);
    await append(stream);
    busy.delete(stream);
    return true;
  }).then((result) => process.send(result));
});
process.send({ ready: true });
