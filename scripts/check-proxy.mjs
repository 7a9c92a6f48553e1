import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import dgram from 'node:dgram';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
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
names.on('message', (query, { port, address }) => names.send(answerTo(query), port, address));
names.bind(0, '127.0.0.1');
await once(names, 'listening');

const apiPort = await freePort('127.0.0.2');
const apis = await Promise.all(['127.0.0.2', '127.0.0.3'].map(startApi));
const proxyPort = await freePort('127.0.0.1');
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'inkpad-proxy-'));
const config = path.join(folder, 'Caddyfile');
fs.writeFileSync(config, localCaddyfile());
const caddy = spawn('caddy', ['run', '--adapter', 'caddyfile', '--config', config], {
  env: { PATH: process.env.PATH, HOME: folder },
  stdio: ['ignore', 'ignore', 'pipe'],
});
let said = '';
caddy.stderr.on('data', (chunk) => (said += chunk));

try {
  await until('it responds', async () => (await servers(1)).has('127.0.0.2'));

  addresses = ['127.0.0.2', '127.0.0.3'];
  await until('a new api gets requests', async () => (await servers(10)).size === 2);

  seen.length = 0;
  await ask('GET', '/', { 'x-forwarded-for': '6.6.6.6', 'x-request-id': 'till-1' });
  assert.equal(seen[0].headers['x-forwarded-for'], '127.0.0.1', 'X-Forwarded-For is overwritten');
  assert.equal(seen[0].headers['x-request-id'], 'till-1', 'X-Request-Id is passed on');

  seen.length = 0;
  assert.equal(await ask('POST', '/dies'), null, 'no response is passed on as no response');
  assert.equal(seen.length, 1, 'a write is not sent twice');

  await stop(apis[0]);
  await until('requests that one api does not accept go to the other', async () => {
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask('POST', '/')));
    return answers.every((answer) => answer === '127.0.0.3');
  });

  addresses = [];
  await stop(apis[1]);
  await until(
    'without any api the response is 503',
    async () => (await ask('POST', '/')) === '503',
  );
  const { headers, body } = await answered('POST', '/api/v1/accounts');
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
  console.error(`check-proxy: ${error.message}\n${said}`);
  process.exitCode = 1;
} finally {
  // It may have rejected the file and exited already.
  if (caddy.exitCode === null) {
    caddy.kill('SIGTERM');
    await once(caddy, 'exit');
  }
  await Promise.all(apis.map(stop));
  names.close();
  fs.rmSync(folder, { recursive: true });
}

/** The committed file, with only addresses and ports replaced. */
function localCaddyfile() {
  const resolver = `resolvers udp/127.0.0.1:${names.address().port}`;
  return [
    [':8080 {', `http://:${proxyPort} {\n\tbind 127.0.0.1`],
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
async function ask(method, url, headers = {}) {
  try {
    const { status, body } = await answered(method, url, headers);
    return status === 200 ? body : `${status}`;
  } catch (error) {
    if (['ECONNRESET', 'ECONNREFUSED'].includes(error.code)) return null;
    throw error;
  }
}

async function answered(method, url, headers = {}) {
  const request = http.request({ port: proxyPort, method, path: url, headers, agent: false });
  request.end();
  const [response] = await once(request, 'response');
  let body = '';
  for await (const chunk of response) body += chunk;
  return { status: response.statusCode, headers: response.headers, body };
}

async function servers(requests) {
  const answers = await Promise.all(Array.from({ length: requests }, () => ask('GET', '/')));
  return new Set(answers);
}

async function until(what, holds) {
  const deadline = Date.now() + patience;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`timed out after ${patience} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function freePort(address) {
  const server = http.createServer().listen(0, address);
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** Any IPv4 query gets all addresses, any other query none. */
function answerTo(query) {
  const end = query.indexOf(0, 12) + 5;
  const wanted = query.readUInt16BE(end - 4) === 1 ? addresses : [];
  const header = Buffer.alloc(12);
  query.copy(header, 0, 0, 2);
  header.writeUInt16BE(0x8180, 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(wanted.length, 6);
  const records = wanted.map((address) =>
    Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split('.').map(Number)]),
  );
  return Buffer.concat([header, query.subarray(12, end), ...records]);
}
