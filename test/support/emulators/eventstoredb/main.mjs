import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { parseArgs } from 'node:util';
import { MEASURED_DELAYS } from './latency.mjs';
import { startEventStoreDb } from './server.mjs';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    control: { type: 'string', default: '0' },
    log: { type: 'string' },
    user: { type: 'string', multiple: true },
    'tls-cert': { type: 'string' },
    'tls-key': { type: 'string' },
    'max-append-size': { type: 'string' },
    delays: { type: 'boolean', default: false },
    leaderless: { type: 'boolean', default: false },
    tie: { type: 'boolean', default: false },
  },
});

const cert = values['tls-cert'];
const key = values['tls-key'];
const size = values['max-append-size'];
const store = await startEventStoreDb({
  port: Number(values.port),
  ...(values.log === undefined ? {} : { log: values.log }),
  ...(values.user === undefined ? {} : { users: users(values.user) }),
  ...(cert && key ? { tls: { cert: readFileSync(cert), key: readFileSync(key) } } : {}),
  ...(size === undefined ? {} : { maxAppendSize: Number(size) }),
  ...(values.delays ? { delays: MEASURED_DELAYS } : {}),
  leaderless: values.leaderless,
});

/** @param {string[]} list name:password */
function users(list) {
  return Object.fromEntries(list.map((entry) => entry.split(/:(.*)/s)));
}

const state = () => ({
  connectionString: store.connectionString,
  appended: store.appended,
  subscriptions: store.subscriptions,
});

const control = createServer(async (request, response) => {
  const respond = (status, body) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  };
  try {
    if (request.method === 'GET') return respond(200, state());
    const name = request.url.slice(1);
    const parameters = await json(request);
    if (name === 'stopListening' || name === 'listenAgain') await store[name]();
    else if (Object.hasOwn(store.fault, name)) store.fault[name](...parameters);
    else return respond(404, { error: `no such fault: ${name}` });
    return respond(200, state());
  } catch (error) {
    return respond(400, { error: String(error) });
  }
});
control.listen(Number(values.control), '127.0.0.1');
await once(control, 'listening');
console.log(`ready ${store.connectionString} control http://127.0.0.1:${control.address().port}`);

const stop = async () => {
  control.close();
  control.closeAllConnections();
  process.stdin.destroy();
  await store.stop();
};
process.once('SIGTERM', stop);
process.once('SIGINT', stop);
// Ends when the other end of the pipe closes, however its process ends.
if (values.tie) process.stdin.resume().once('end', stop);
