import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { CallbackSigner } from './callbacks.mjs';
import { findSignedClaims, findAssertionError, findSaveError } from './jwt.mjs';
import {
  findClassError,
  findFieldsError,
  findIdError,
  findObjectError,
  isOverQuota,
  LONGEST_JWT,
  mergeFields,
  MOST_KEPT_MESSAGES,
  shouldNotify,
} from './rules.mjs';

const REST = '/walletobjects/v1';
const SAVE = '/gp/v/save';
const TOKEN_SECONDS = 3600;
const GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** Fails a request with Google's error body. */
class ApiError extends Error {
  constructor(status, reason, message) {
    super(message);
    Object.assign(this, { status, reason });
  }
}

/** @param {import('./server.d.mts').GoogleWalletOptions} options */
export async function startGoogleWallet(options = {}) {
  const wallet = new GoogleWallet(options);
  await wallet.listenAgain();
  return wallet;
}

class GoogleWallet {
  classes = new Map();
  objects = new Map();
  /** Objects that a user has in the wallet. */
  saved = new Set();
  notifications = [];
  requests = [];
  tokenRequests = 0;
  #tokens = new Map();
  #faults = [];
  #starts = [];
  #held = false;
  #silent = [];
  #server;
  #port;
  #host;

  constructor({
    port = 0,
    host = '127.0.0.1',
    issuerId = '3388000000022000000',
    requestsPerSecond = 20,
    allowHttp = false,
    now = Date.now,
    key,
  }) {
    this.#port = port;
    this.#host = host;
    this.issuerId = issuerId;
    this.requestsPerSecond = requestsPerSecond;
    this.allowHttp = allowHttp;
    this.now = now;
    this.signer = new CallbackSigner(issuerId, now);
    const pair =
      key ??
      generateKeyPairSync('rsa', {
        modulusLength: 2048,
        publicKeyEncoding: { type: 'spki', format: 'pem' },
        privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      });
    this.account = {
      email: 'inkpad@cards.iam.gserviceaccount.com',
      keyId: 'fake-key-1',
      publicKey: pair.publicKey,
      privateKey: pair.privateKey,
    };
  }

  get origin() {
    return `http://${this.#host}:${this.#port}`;
  }

  get tokenUrl() {
    return `${this.origin}/token`;
  }

  get saveUrl() {
    return `${this.origin}${SAVE}`;
  }

  /** Settings of a service that uses this server. */
  get environment() {
    return {
      GOOGLE_WALLET_ISSUER_ID: this.issuerId,
      GOOGLE_WALLET_KEY: JSON.stringify({
        type: 'service_account',
        client_email: this.account.email,
        private_key_id: this.account.keyId,
        private_key: this.account.privateKey,
        token_uri: this.tokenUrl,
      }),
      GOOGLE_WALLET_URL: `${this.origin}${REST}`,
    };
  }

  /** Writes since the start: what a client has asked for besides reading. */
  get writes() {
    return this.requests.filter(({ method }) => method !== 'GET');
  }

  fail(count, fault = {}) {
    const usual = { status: 503, reason: 'backendError', headers: {}, afterwards: false, on: '' };
    for (let i = 0; i < count; i++) this.#faults.push({ ...usual, ...fault });
  }

  hold(objectId) {
    this.#held = objectId;
    if (!objectId) for (const socket of this.#silent.splice(0)) socket.destroy();
  }

  expireTokens() {
    this.#tokens.clear();
  }

  async stopListening() {
    const server = this.#server;
    this.#server = undefined;
    server?.closeAllConnections();
    if (server) await new Promise((resolve) => server.close(resolve));
  }

  async listenAgain() {
    const server = createServer((request, response) => void this.#respond(request, response));
    server.listen(this.#port, '127.0.0.1');
    await once(server, 'listening');
    this.#port = server.address().port;
    this.#server = server;
  }

  stop() {
    return this.stopListening();
  }

  /** Saves a pass by its link, as a user's phone does. */
  save(link) {
    return fetch(link, { redirect: 'manual' });
  }

  envelope(event, wrong) {
    return this.signer.envelope(event, wrong);
  }

  async #respond(request, response) {
    try {
      if (this.#held) {
        this.#silent.push(request.socket);
        return;
      }
      const body = await text(request);
      const { status, json, headers = {} } = this.#route(request, body);
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(json));
    } catch (error) {
      const { status = 500, reason = 'internal', headers = {}, message } = error;
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(
        JSON.stringify({ error: { code: status, message, errors: [{ reason, message }] } }),
      );
    }
  }

  #route(request, body) {
    const { pathname } = new URL(request.url, this.origin);
    if (pathname === '/token') return this.#exchange(request, body);
    if (pathname === '/gp/m/issuer/keys') {
      return {
        status: 200,
        json: this.signer.keys(),
        headers: { 'cache-control': 'max-age=3600' },
      };
    }
    if (pathname.startsWith(`${SAVE}/`)) return this.#save(pathname.slice(SAVE.length + 1));
    if (!pathname.startsWith(`${REST}/`)) throw new ApiError(404, 'notFound', 'Not found');
    return this.#rest(request, pathname.slice(REST.length + 1), body);
  }

  #exchange(request, body) {
    this.tokenRequests++;
    const refuse = (error_description) => ({
      status: 400,
      json: { error: 'invalid_grant', error_description },
    });
    const form = new URLSearchParams(body);
    const type = request.headers['content-type'] ?? '';
    if (request.method !== 'POST' || !type.startsWith('application/x-www-form-urlencoded')) {
      return refuse('must be a posted form');
    }
    if (form.get('grant_type') !== GRANT) return refuse('grant_type');
    const claims = findSignedClaims(form.get('assertion') ?? '', this.account);
    if (!claims) return refuse('Invalid JWT Signature.');
    const nowSeconds = Math.floor(this.now() / 1000);
    const error = findAssertionError(claims, {
      email: this.account.email,
      tokenUrl: this.tokenUrl,
      nowSeconds,
    });
    if (error) return refuse(error);
    const token = randomBytes(16).toString('hex');
    this.#tokens.set(token, this.now() + TOKEN_SECONDS * 1000);
    return {
      status: 200,
      json: { access_token: token, expires_in: TOKEN_SECONDS, token_type: 'Bearer' },
    };
  }

  #rest(request, path, body) {
    this.#admit(request);
    const [kind = '', id, action] = path.split('/').map(decodeURIComponent);
    const records = { loyaltyClass: this.classes, loyaltyObject: this.objects }[kind];
    if (!records) throw new ApiError(404, 'notFound', 'Not found');
    const resource = body === '' ? {} : JSON.parse(body);
    this.requests.push({ method: request.method, path, body: resource, at: this.now() });
    const due = this.#faults.findIndex(({ on }) => path.includes(on));
    const [fault] = due < 0 ? [] : this.#faults.splice(due, 1);
    if (fault && !fault.afterwards) throw this.#failure(fault);
    const json = this.#perform(request.method, { kind, id, action, records }, resource);
    if (fault) throw this.#failure(fault);
    return { status: 200, json };
  }

  #failure({ status, reason, headers }) {
    return Object.assign(new ApiError(status, reason, 'It was decided that this fails.'), {
      headers,
    });
  }

  #admit(request) {
    const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? '';
    const until = this.#tokens.get(token);
    if (until === undefined || until <= this.now()) {
      throw new ApiError(401, 'authError', 'Invalid Credentials');
    }
    const second = Date.now() - 1000;
    this.#starts = this.#starts.filter((at) => at > second);
    if (this.#starts.length >= this.requestsPerSecond) {
      throw new ApiError(403, 'rateLimitExceeded', 'Rate Limit Exceeded');
    }
    this.#starts.push(Date.now());
  }

  #perform(method, { kind, id, action, records }, resource) {
    if (method === 'POST' && id === undefined) return this.#insert(kind, records, resource);
    const existing = records.get(id);
    if (id !== undefined && !existing) {
      const error = findIdError(this.issuerId, id);
      if (error) throw new ApiError(error.status, error.reason, error.message);
      throw new ApiError(404, kind === 'loyaltyClass' ? 'classNotFound' : 'resourceNotFound', id);
    }
    if (method === 'GET' && id !== undefined) return existing;
    if (method === 'POST' && action === 'addMessage')
      return this.#addMessage(kind, existing, resource);
    if (method === 'PATCH' || method === 'PUT') {
      return this.#update(kind, method === 'PUT' ? {} : existing, existing, resource);
    }
    throw new ApiError(405, 'httpMethodNotAllowed', `${method} ${kind}`);
  }

  #insert(kind, records, resource) {
    const error = findIdError(this.issuerId, resource.id) ?? findFieldsError(kind, resource);
    if (error) throw new ApiError(error.status, error.reason, error.message);
    if (records.has(resource.id))
      throw new ApiError(409, 'existingResource', `${resource.id} exists`);
    const record = mergeFields({}, resource);
    delete record.notifyPreference;
    this.#check(kind, record);
    if (record.reviewStatus === 'UNDER_REVIEW') record.reviewStatus = 'APPROVED';
    records.set(record.id, record);
    return record;
  }

  #update(kind, base, existing, resource) {
    const error = findFieldsError(kind, resource);
    if (error) throw new ApiError(error.status, error.reason, error.message);
    if (kind === 'loyaltyClass' && resource.reviewStatus !== 'UNDER_REVIEW') {
      throw new ApiError(400, 'invalidReviewStatus', 'reviewStatus must be UNDER_REVIEW');
    }
    const { notifyPreference, ...change } = resource;
    const after = { ...mergeFields(base, change), id: existing.id };
    this.#check(kind, after);
    if (after.reviewStatus === 'UNDER_REVIEW') after.reviewStatus = 'APPROVED';
    const isNotified = notifyPreference === 'NOTIFY_ON_UPDATE' && shouldNotify(existing, after);
    if (isNotified && !isOverQuota(this.notifications, 'update', existing.id, this.now())) {
      this.#notify('update', existing.id, after.loyaltyPoints?.balance?.string ?? '');
    }
    const records = kind === 'loyaltyClass' ? this.classes : this.objects;
    records.set(existing.id, after);
    return after;
  }

  #check(kind, record) {
    const error =
      kind === 'loyaltyClass'
        ? findClassError(record, this.allowHttp)
        : findObjectError(record, this.classes, this.allowHttp);
    if (error) throw new ApiError(error.status, error.reason, error.message);
  }

  #addMessage(kind, existing, { message }) {
    if (typeof message?.header !== 'string' || typeof message?.body !== 'string') {
      throw new ApiError(400, 'invalid', 'a message needs header and body');
    }
    if (message.messageType === 'TEXT_AND_NOTIFY') {
      if (isOverQuota(this.notifications, 'message', existing.id, this.now())) {
        throw new ApiError(403, 'QuotaExceededException', 'Quota exceeded for notifications');
      }
      this.#notify('message', existing.id, message.body);
    }
    const others = (existing.messages ?? []).filter(
      ({ id }) => id === undefined || id !== message.id,
    );
    existing.messages = [...others, message].slice(-MOST_KEPT_MESSAGES);
    return { resource: existing };
  }

  /** Counted whether or not somebody has saved the object; `seen` by those who have. */
  #notify(kind, objectId, text) {
    this.notifications.push({
      kind,
      objectId,
      text,
      at: this.now(),
      seen: this.saved.has(objectId),
    });
  }

  #save(jwt) {
    if (jwt.length > LONGEST_JWT) throw new ApiError(414, 'tooLong', 'The JWT is too long');
    const claims = findSignedClaims(jwt, this.account);
    if (!claims) throw new ApiError(400, 'invalidSignature', 'The JWT is not signed by the issuer');
    const error = findSaveError(claims, this.account.email);
    if (error) throw new ApiError(400, 'invalidJwt', error);
    for (const loyaltyClass of claims.payload.loyaltyClasses ?? []) {
      if (!this.classes.has(loyaltyClass.id))
        this.#insert('loyaltyClass', this.classes, loyaltyClass);
    }
    for (const loyaltyObject of claims.payload.loyaltyObjects) {
      if (!this.objects.has(loyaltyObject.id))
        this.#insert('loyaltyObject', this.objects, loyaltyObject);
      this.saved.add(loyaltyObject.id);
    }
    return { status: 200, json: { saved: claims.payload.loyaltyObjects.map(({ id }) => id) } };
  }
}
