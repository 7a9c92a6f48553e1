import { randomUUID } from 'node:crypto';
import { Connection, postRequest } from './connection.mjs';
import { inRandomOrder, round } from './rounds.mjs';
import { createTillBody, stampBody } from './stamp-body.mjs';

const SHOWN_FAILURES = 3;

/** The load generator, in a process of its own so that it never waits for the service it measures. */
const targets = new Map();

process.on('message', (message) => {
  // A rejection ends the process, which the bench reports as a failure.
  void handle(message).then((result) => process.send(result));
});

async function handle({ target, name, concurrency, seconds }) {
  if (target) {
    const { port, paths, token, hasKeys, locationId } = target;
    const createRequest = (path) => {
      const body = locationId === undefined ? stampBody : createTillBody(locationId);
      const keys = hasKeys ? [`Idempotency-Key: ${randomUUID()}`] : [];
      return postRequest(path, token, body, keys);
    };
    const requests = paths.map((path) => {
      const request = createRequest(path);
      return hasKeys || locationId !== undefined ? () => createRequest(path) : () => request;
    });
    targets.set(target.name, { port, requests: inRandomOrder(requests) });
    return { ready: true };
  }
  const { port, requests } = targets.get(name);
  const connections = await Promise.all(
    Array.from({ length: concurrency }, () => Connection.open(port)),
  );
  let reported = 0;
  try {
    return await round({ concurrency, seconds }, async (worker) => {
      const { status, body } = await connections[worker].send(requests.next().value());
      if (status === 200) return true;
      if (reported++ < SHOWN_FAILURES) console.error(`${name} responded with ${status}: ${body}`);
      return false;
    });
  } finally {
    for (const connection of connections) connection.close();
  }
}
