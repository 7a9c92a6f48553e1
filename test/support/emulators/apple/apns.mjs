import { createPublicKey, verify } from 'node:crypto';
import { once } from 'node:events';
import { createSecureServer } from 'node:http2';
import { connect, createServer } from 'node:net';

const HEX = /^\/3\/device\/([0-9a-f]+)$/;
const LONGEST_BODY = 4096;
const TOKEN_LASTS_SECONDS = 60 * 60;
const PUSH_TYPES = new Set(['alert', 'background', 'voip', 'complication', 'fileprovider', 'mdm', 'liveactivity']); // prettier-ignore

/** An emulator of Apple's push service. Its rules are listed in README.md. */
export class Apns {
  /** The accepted pushes. @type {{ token: string; headers: object }[]} */
  pushes = [];
  /** Connections that were ever opened. */
  connections = 0;
  /** @type {Map<string, () => void>} */
  #devices = new Map();
  /** @type {Map<string, number>} when it was found to be gone */
  #gone = new Map();
  #sessions = new Set();
  #signers = new Map();
  #reply = null;
  /** The network in front of the service. @type {Set<{ outer: import('node:net').Socket; inner: import('node:net').Socket }>} */
  #lines = new Set();

  /** @param {{ server: { certificate: string; key: string }; root: string; wwdr: string }} certificates */
  constructor(certificates, port) {
    const { server, root, wwdr } = certificates;
    this.port = port;
    this.http = createSecureServer({
      cert: server.certificate,
      key: server.key,
      ca: [root, wwdr],
      requestCert: true,
      // It is looked at with each push, so that the error has a reason.
      rejectUnauthorized: false,
    });
    this.http.on('session', (session) => {
      this.connections += 1;
      this.#sessions.add(session);
      session.once('close', () => this.#sessions.delete(session));
      session.on('error', () => undefined);
    });
    this.http.on('sessionError', () => undefined);
    this.http.on('stream', (stream, headers) => {
      stream.on('error', () => undefined);
      this.#receive(stream, headers).catch((error) => stream.destroy(error));
    });
  }

  static async start(certificates, port = 0) {
    const apns = new Apns(certificates, port);
    await apns.#listen();
    return apns;
  }

  get url() {
    return `https://localhost:${this.port}`;
  }

  /** A device that takes pushes. @param {string} token @param {() => void} [onPush] */
  register(token, onPush = () => undefined) {
    this.#devices.set(token, onPush);
    this.#gone.delete(token);
  }

  /** The pass was removed, or the phone is lost. @param {string} token */
  unregister(token, at = Date.now()) {
    this.#devices.delete(token);
    this.#gone.set(token, at);
  }

  /** A key of the push service. @param {string} id @param {string} key in PEM @param {string} team */
  trust(id, key, team) {
    this.#signers.set(id, { key: createPublicKey(key), team });
  }

  /** To every push from now on; null: as by the rules. */
  respondWith(reply) {
    this.#reply = reply;
  }

  /** Connections stay open and nothing gets through, as when a network is gone. New ones get through. */
  fallSilent() {
    for (const { outer, inner } of this.#lines) {
      outer.unpipe(inner).pause();
      inner.unpipe(outer).pause();
    }
  }

  goAway() {
    for (const session of this.#sessions) session.goaway();
  }

  /** Not to be reached until `restart`. */
  async stop() {
    this.front.close();
    for (const { outer, inner } of this.#lines) {
      outer.destroy();
      inner.destroy();
    }
    if (this.front.listening) await once(this.front, 'close');
    this.http.close();
  }

  async restart() {
    await this.#listen();
  }

  async #listen() {
    if (!this.http.listening) {
      this.http.listen(0, '127.0.0.1');
      await once(this.http, 'listening');
    }
    const { port } = this.http.address();
    this.front = createServer((outer) => {
      const inner = connect(port, '127.0.0.1');
      const line = { outer, inner };
      this.#lines.add(line);
      const end = () => {
        outer.destroy();
        inner.destroy();
        this.#lines.delete(line);
      };
      for (const socket of [outer, inner]) socket.on('error', end).on('close', end);
      outer.pipe(inner);
      inner.pipe(outer);
    }).listen(this.port, '127.0.0.1');
    await once(this.front, 'listening');
    this.port = this.front.address().port;
  }

  async #receive(stream, headers) {
    let body = '';
    for await (const chunk of stream) body += chunk;
    const token = HEX.exec(headers[':path'])?.[1] ?? '';
    const { status, reason, ...more } = this.#reply ?? this.#judge(stream, headers, body, token);
    if (stream.destroyed) return;
    stream.respond({ ':status': status, ...more.headers });
    stream.end(reason ? JSON.stringify({ reason, timestamp: more.timestamp }) : '');
    if (status !== 200) return;
    this.pushes.push({ token, headers });
    this.#devices.get(token)?.();
  }

  #judge(stream, headers, body, token) {
    const error =
      refusedRequest(headers, body) ?? this.#refusedSender(stream, headers) ?? refusedPush(headers);
    if (error) return error;
    const goneAt = this.#gone.get(token);
    if (goneAt !== undefined) return { status: 410, reason: 'Unregistered', timestamp: goneAt };
    if (!this.#devices.has(token)) return { status: 400, reason: 'BadDeviceToken' };
    return { status: 200 };
  }

  #refusedSender(stream, headers) {
    const { authorization } = headers;
    if (authorization !== undefined) return this.#refusedToken(authorization);
    const { socket } = stream.session;
    const certificate = socket.getPeerCertificate();
    if (!certificate?.subject) return { status: 403, reason: 'MissingProviderToken' };
    if (!socket.authorized) return { status: 403, reason: 'BadCertificate' };
    return certificate.subject.UID === headers['apns-topic']
      ? undefined
      : { status: 400, reason: 'TopicDisallowed' };
  }

  #refusedToken(authorization) {
    const wrong = { status: 403, reason: 'InvalidProviderToken' };
    const [head, claims, signature] = authorization.replace(/^bearer /i, '').split('.');
    if (!head || !claims || !signature) return wrong;
    const { alg, kid } = fromBase64(head);
    const { iss, iat } = fromBase64(claims);
    const signer = this.#signers.get(kid);
    if (alg !== 'ES256' || !signer || signer.team !== iss) return wrong;
    const key = { key: signer.key, dsaEncoding: 'ieee-p1363' };
    const signed = verify('sha256', Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, 'base64url')); // prettier-ignore
    if (!signed) return wrong;
    return Date.now() / 1000 - iat > TOKEN_LASTS_SECONDS
      ? { status: 403, reason: 'ExpiredProviderToken' }
      : undefined;
  }
}

function refusedRequest(headers, body) {
  if (headers[':method'] !== 'POST') return { status: 405, reason: 'MethodNotAllowed' };
  if (!headers[':path'].startsWith('/3/device/')) return { status: 404, reason: 'BadPath' };
  if (!HEX.test(headers[':path'])) return { status: 400, reason: 'BadDeviceToken' };
  if (body.length > LONGEST_BODY) return { status: 413, reason: 'PayloadTooLarge' };
  if (body === '') return { status: 400, reason: 'PayloadEmpty' };
  return undefined;
}

function refusedPush(headers) {
  if (headers['apns-topic'] === undefined) return { status: 400, reason: 'MissingTopic' };
  if (!PUSH_TYPES.has(headers['apns-push-type'])) {
    return { status: 400, reason: 'InvalidPushType' };
  }
  const priority = headers['apns-priority'];
  const fits = headers['apns-push-type'] === 'background' ? priority === '5' : ['5', '10'].includes(priority); // prettier-ignore
  return fits ? undefined : { status: 400, reason: 'BadPriority' };
}

function fromBase64(text) {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString()) ?? {};
  } catch {
    return {};
  }
}
