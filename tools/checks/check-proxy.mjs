import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import dgram from 'node:dgram';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';

/**
 * Runs deploy/Caddyfile in a real Caddy, in front of two fake apis and a fake name server, to test the
 * proxy of docker-compose.yml without a Docker engine. Part of check-compose.sh.
 */
const patience = 15_000;
let addresses = ['127.0.0.2'];
const seen = [];

const names = dgram.createSocket('udp4');
names.on('message', (query, { port, address }) =>
  names.send(createDnsResponse(query), port, address),
);
names.bind(0, '127.0.0.1');
await once(names, 'listening');

const apiPort = await findFreePort('127.0.0.2');
const apis = await Promise.all(['127.0.0.2', '127.0.0.3'].map(startApi));
const [proxyPort, healthPort, httpPort, tlsPort] = await Promise.all(
  Array.from({ length: 4 }, () => findFreePort('127.0.0.1')),
);
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-proxy-'));
const config = path.join(folder, 'Caddyfile');
fs.writeFileSync(config, createLocalCaddyfile());
let output = '';
let caddy = startCaddy({
  SITE_ADDRESS: `http://:${proxyPort}`,
  DOMAIN: 'invalid',
  TRUSTED_PROXIES: '',
});

try {
  await waitUntil('it responds', async () => (await findServers(1)).has('127.0.0.2'));

  addresses = ['127.0.0.2', '127.0.0.3'];
  await waitUntil('a new api gets requests', async () => (await findServers(10)).size === 2);

  seen.length = 0;
  await sendToProxy('GET', '/', { 'x-forwarded-for': '6.6.6.6', 'x-request-id': 'till-1' });
  assert.equal(seen[0].headers['x-forwarded-for'], '127.0.0.1', 'X-Forwarded-For is overwritten');
  assert.equal(seen[0].headers['x-request-id'], 'till-1', 'X-Request-Id is passed on');

  seen.length = 0;
  assert.equal(
    (await send('GET', '/', {}, { port: healthPort, host: '127.0.0.1' })).status,
    200,
    'the health check reaches an api',
  );

  seen.length = 0;
  assert.equal(await sendToProxy('POST', '/dies'), null, 'no response is passed on as no response');
  assert.equal(seen.length, 1, 'a write is not sent twice');

  await restart({
    SITE_ADDRESS: `http://:${proxyPort}`,
    DOMAIN: 'invalid',
    TRUSTED_PROXIES: '127.0.0.1/32 ::1/128',
  });
  await waitUntil('it responds again', async () => (await sendToProxy('GET', '/')) !== null);
  seen.length = 0;
  await sendToProxy('GET', '/', { 'x-forwarded-for': '6.6.6.6' });
  assert.equal(
    seen[0].headers['x-forwarded-for'],
    '6.6.6.6, 127.0.0.1',
    'a proxy that is trusted says who calls',
  );

  await restart({ SITE_ADDRESS: 'localhost', DOMAIN: 'localhost', TRUSTED_PROXIES: '' });
  await waitUntil('a domain has TLS by itself', async () => (await sendOverTls()) !== null);
  const redirected = await send('GET', '/join?x=1', {}, { port: httpPort });
  assert.equal(redirected.status, 308, 'http leads to https');
  assert.equal(redirected.headers.location, 'https://localhost/join?x=1');
  for (const path of ['/api', '/api/v1/accounts?x=1', '/api/']) {
    seen.length = 0;
    const refused = await send('GET', path, {}, { port: httpPort });
    assert.equal(refused.status, 403, `${path} over http is refused`);
    assert.match(refused.headers['content-type'], /^application\/json/);
    const { error, code, resolution, documentation_url: docs } = JSON.parse(refused.body);
    assert.deepEqual([code, docs], ['forbidden', 'https://localhost/docs']);
    assert.match(`${error} ${resolution}`, /only available over https.*https:\/\/localhost\./);
    assert.equal(seen.length, 0, 'and reaches no api');
  }
  seen.length = 0;
  const secure = await sendOverTls();
  assert.equal(secure.status, 200, 'the api responds over TLS');
  assert.equal(seen[0].headers['x-forwarded-proto'], 'https');
  assert.equal(
    (await send('GET', '/', {}, { port: healthPort, host: '127.0.0.1' })).status,
    200,
    'the health check reaches an api beside TLS',
  );
  const { fingerprint } = secure;
  await restart({ SITE_ADDRESS: 'localhost', DOMAIN: 'localhost', TRUSTED_PROXIES: '' });
  await waitUntil('it is back', async () => (await sendOverTls()) !== null);
  assert.equal((await sendOverTls()).fingerprint, fingerprint, 'certificates are kept in /data');
  await restart({ SITE_ADDRESS: `http://:${proxyPort}`, DOMAIN: 'invalid', TRUSTED_PROXIES: '' });
  await waitUntil('it is back in plain http', async () => (await sendToProxy('GET', '/')) !== null);

  await stop(apis[0]);
  await waitUntil('requests that one api does not accept go to the other', async () => {
    const addresses = await Promise.all(Array.from({ length: 10 }, () => sendToProxy('POST', '/')));
    return addresses.every((address) => address === '127.0.0.3');
  });

  addresses = [];
  await stop(apis[1]);
  await waitUntil(
    'without any api the response is 503',
    async () => (await sendToProxy('POST', '/')) === '503',
  );
  const { headers, body } = await send('POST', '/api/v1/accounts');
  assert.match(headers['content-type'], /^application\/json/, 'the 503 is JSON');
  assert.equal(headers['retry-after'], '1', 'the 503 says when to retry');
  const { error, code, resolution, documentation_url, request_id } = JSON.parse(body);
  assert.equal(code, 'unavailable', 'the 503 has the code of the contract');
  for (const text of [error, resolution]) assert.match(text, /\w/, 'the 503 says what to do');
  assert.equal(documentation_url, `http://localhost:${proxyPort}/docs`);
  assert.match(request_id, /^[\da-f-]{36}$/, 'the 503 has a request id');
  assert.equal(headers['x-request-id'], request_id, 'the header has the same request id');
  console.log('deploy/Caddyfile works');
} catch (error) {
  console.error(`check-proxy: ${error.message}\n${output}`);
  process.exitCode = 1;
} finally {
  await end(caddy);
  await Promise.all(apis.map(stop));
  names.close();
  fs.rmSync(folder, { recursive: true });
}

/** Starts Caddy with the settings of docker-compose.yml. */
function startCaddy(environment) {
  const started = spawn('caddy', ['run', '--adapter', 'caddyfile', '--config', config], {
    env: { PATH: process.env.PATH, HOME: folder, ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  started.stderr.on('data', (chunk) => (output += chunk));
  return started;
}

async function restart(environment) {
  await end(caddy);
  caddy = startCaddy(environment);
}

async function end(process) {
  // It may have rejected the file and exited already.
  if (process.exitCode !== null) return;
  process.kill('SIGTERM');
  await once(process, 'exit');
}

/** Creates a copy of the committed file, with only addresses and ports replaced. */
function createLocalCaddyfile() {
  const resolver = `resolvers udp/127.0.0.1:${names.address().port}`;
  return [
    ['admin off', `admin off\n\thttp_port ${httpPort}\n\thttps_port ${tlsPort}`],
    ['{$SITE_ADDRESS} {', '{$SITE_ADDRESS} {\n\tbind 127.0.0.1'],
    ['http://{$DOMAIN} {', 'http://{$DOMAIN} {\n\tbind 127.0.0.1'],
    ['http://127.0.0.1:8081', `http://127.0.0.1:${healthPort}`],
    ['port 3000', `port ${apiPort}\n\t\t\t${resolver}`],
  ].reduce(
    (text, [from, to]) => {
      assert.ok(text.includes(from), `deploy/Caddyfile contains ${from}`);
      return text.replace(from, to);
    },
    fs.readFileSync('deploy/Caddyfile', 'utf8'),
  );
}

async function startApi(address) {
  const server = http.createServer((request, response) => {
    seen.push(request);
    if (request.url === '/dies') request.socket.destroy();
    else response.end(address);
  });
  server.listen(apiPort, address);
  await once(server, 'listening');
  return server;
}

async function stop(server) {
  if (!server.listening) return;
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
}

/** @returns {Promise<string | null>} which api responded; null when none did */
async function sendToProxy(method, url, headers = {}) {
  try {
    const { status, body } = await send(method, url, headers);
    return status === 200 ? body : `${status}`;
  } catch (error) {
    if (['ECONNRESET', 'ECONNREFUSED'].includes(error.code)) return null;
    throw error;
  }
}

async function send(method, url, headers = {}, where = { port: proxyPort }) {
  const request = http.request({ method, path: url, headers, agent: false, ...where });
  request.end();
  const [response] = await once(request, 'response');
  let body = '';
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode, headers: response.headers, body };
}

/** Trusts nobody but the authority that Caddy has made for localhost. */
async function sendOverTls() {
  const root = path.join(folder, '.local/share/caddy/pki/authorities/local/root.crt');
  if (!fs.existsSync(root)) return null;
  const options = { host: 'localhost', port: tlsPort, ca: fs.readFileSync(root), agent: false };
  try {
    const request = https.request({ ...options, path: '/' });
    request.end();
    const [response] = await once(request, 'response');
    const { fingerprint256 } = response.socket.getPeerCertificate();
    response.resume();
    await once(response, 'end');
    return { status: response.statusCode, fingerprint: fingerprint256 };
  } catch (error) {
    if (['ECONNRESET', 'ECONNREFUSED', 'EPROTO'].includes(error.code)) return null;
    throw error;
  }
}

async function findServers(requests) {
  const addresses = await Promise.all(
    Array.from({ length: requests }, () => sendToProxy('GET', '/')),
  );
  return new Set(addresses);
}

async function waitUntil(what, holds) {
  const deadline = Date.now() + patience;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`timed out after ${patience} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function findFreePort(address) {
  const server = http.createServer().listen(0, address);
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Creates a response with all addresses for an IPv4 query, and none for any other. */
function createDnsResponse(query) {
  const end = query.indexOf(0, 12) + 5;
  const resolved = query.readUInt16BE(end - 4) === 1 ? addresses : [];
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(resolved.length, 6);
  const records = resolved.map((address) =>
    Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
  );
  return Buffer.concat([header, query.subarray(12, end), ...records]);
}
