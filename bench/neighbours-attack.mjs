import { Agent, request as httpRequest } from 'node:http';

/** The requests of the busy store, in a process of their own so that the neighbour's clock never waits for them. */
const MAX_IN_FLIGHT = 64;
const agent = new Agent({ keepAlive: true, maxSockets: MAX_IN_FLIGHT });

process.on('message', (message) => {
  // A rejection ends the process, which the bench reports as a failure.
  void attack(message).then((result) => process.send(result));
});

/**
 * Sends requests at a steady rate; those that find too many in flight wait.
 * @returns {Promise<Record<string, number>>} how many responses had each status
 */
async function attack({ port, requests, tokens, perSecond, seconds }) {
  const statuses = {};
  const inFlight = new Set();
  const start = performance.now();
  for (let i = 0; i < perSecond * seconds; i++) {
    const due = start + (i * 1000) / perSecond;
    const early = due - performance.now();
    if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
    while (inFlight.size >= MAX_IN_FLIGHT) await Promise.race(inFlight);
    if (performance.now() > start + seconds * 1000) break;
    const one = send(port, requests[i % requests.length], tokens[i % tokens.length])
      .then((status) => (statuses[status] = (statuses[status] ?? 0) + 1))
      .finally(() => inFlight.delete(one));
    inFlight.add(one);
  }
  await Promise.all(inFlight);
  return statuses;
}

function send(port, { method, path, body, type }, token) {
  return new Promise((resolve) => {
    const payload = body === undefined ? undefined : Buffer.from(body, type ? 'base64' : 'utf8');
    const headers = {
      authorization: `Bearer ${token}`,
      ...(payload && {
        'content-type': type ?? 'application/json',
        'content-length': payload.length,
      }),
    };
    const one = httpRequest({ port, host: '127.0.0.1', method, path, headers, agent });
    one.on('response', (response) => {
      response.resume();
      response.on('close', () => resolve(response.statusCode));
    });
    one.on('error', () => resolve('cut'));
    one.end(payload);
  });
}
