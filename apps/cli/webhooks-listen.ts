import { EnvHttpProxyAgent, fetch } from 'undici';
import { LRUCache } from 'lru-cache';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { getErrorMessage } from '#platform/kernel/errors.js';
import { readLocalService } from './local-service.js';
import { parseProgram } from './programs.js';
import { forward } from './webhooks/webhook-forward.js';
import { findSignatureError } from './webhooks/webhook-verification.js';
import type { EnvelopeJson } from '#outbound/public-events/event-feed.dto.js';

/**
 * A receiver for developers: verifies and prints the webhooks it receives, passes them on to a program that is being
 * written, and can simulate a failing one.
 * Subscribes on its own and unsubscribes at the end, unless given the secret of an existing subscription.
 */

const IDS_KEPT = 100_000;

type Options = {
  host: string;
  port: number;
  secret?: string;
  url?: string;
  token?: string;
  account?: number;
  targetUrl?: string;
  events: string[];
  signature: 'hmac' | 'ed25519';
  status?: number;
  fail?: number;
  delay: number;
  retryAfter?: number;
  drop?: true;
  forwardTo?: string;
  forwardTimeout: number;
};

/** The response to a webhook; without a status the connection is dropped instead. */
type ListenerResponse = {
  status: number | undefined;
  headers: Record<string, string>;
  body: Buffer;
  note: string;
};

type Subscription = {
  id: number;
  /** The secret, or the public key of ed25519. */
  key: string;
  remove: () => Promise<void>;
};

const options = parseProgram('webhooks:listen').opts<Options>();

/** How many attempts each event had, and whether one got a 2xx. */
const seen = new LRUCache<string, { attempts: number; wasAccepted: boolean }>({ max: IDS_KEPT });
const ending = new AbortController();
const NOTHING = { headers: {}, body: Buffer.alloc(0) };
/** A webhook may arrive before the response with the key has been read. */
let resolveKey: (key: string) => void = () => undefined;
const signatureKey = new Promise<string>((resolve) => {
  resolveKey = resolve;
});

const server = createServer((request, response) => {
  receive(request, response).catch((error: unknown) => {
    if (!ending.signal.aborted) console.error(getErrorMessage(error));
    response.destroy();
  });
});

try {
  await listen();
} catch (error) {
  console.error(getErrorMessage(error));
  process.exitCode = 1;
} finally {
  ending.abort();
  server.closeAllConnections();
  server.close();
}

async function listen(): Promise<void> {
  server.listen(options.port, options.host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const here = `http://${options.host}:${port}/`;
  const stop = new Promise<void>((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => resolve());
  });
  const { secret, targetUrl = here } = options;
  const subscription = secret === undefined ? await subscribe(targetUrl) : undefined;
  resolveKey(secret ?? subscription?.key ?? '');
  console.log(`Listening at ${here}${subscription ? ` for ${options.events.join(', ')}` : ''}`);
  if (options.forwardTo !== undefined) {
    console.log(`Forwarding to ${options.forwardTo}`);
    // Its signatures are passed on as they are, so whoever is forwarded to has to know the key.
    if (subscription) console.log(describeKey(subscription.key));
  }
  await stop;
  await subscription?.remove();
  console.log(subscription ? '\nUnsubscribed.' : '');
}

async function subscribe(target_url: string): Promise<Subscription> {
  const { base_url, api_token, account_id } = findService();
  console.error(`service: ${base_url}, store ${account_id}`);
  const path = `/api/v1/accounts/${account_id}/webhook_subscriptions`;
  // A service of this machine is reached directly, whatever the environment says.
  const proxy = options.url === undefined ? {} : { dispatcher: new EnvHttpProxyAgent() };
  const call = async (method: string, rest: string, body?: object) => {
    const response = await fetch(base_url + path + rest, {
      method,
      headers: {
        authorization: `Bearer ${api_token}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
      ...proxy,
    }).catch((cause: unknown) => {
      throw new Error(`${method} ${path}${rest} got no response from ${base_url}`, { cause });
    });
    return { status: response.status, text: await response.text() };
  };
  const { events, signature } = options;
  const body = { events, target_url, signature, description: 'webhooks:listen' };
  const creation = await call('POST', '', body);
  if (creation.status !== 201)
    throw new Error(`Could not subscribe: ${creation.status} ${creation.text}`);
  const subscription = JSON.parse(creation.text) as {
    id: number;
    secret: string;
    public_key: string | null;
  };
  return {
    id: subscription.id,
    key: subscription.public_key ?? subscription.secret,
    remove: async () => {
      const { status, text } = await call('DELETE', `/${subscription.id}`);
      // A 410 response has already deleted it.
      if (status === 204 || status === 404) return;
      throw new Error(`Could not delete subscription ${subscription.id}: ${status} ${text}`);
    },
  };
}

function describeKey(key: string): string {
  return key.startsWith('whpk_') ? `Verify with the public key ${key}` : `Signed with ${key}`;
}

function findService() {
  const { url, token, account } = options;
  if (url === undefined && token === undefined && account === undefined) return readLocalService();
  if (url === undefined || token === undefined || account === undefined) {
    throw new Error(
      '--url, --token and --account must be given together (or use --secret, or npm start).',
    );
  }
  return { base_url: url.replace(/\/+$/, ''), api_token: token, account_id: account };
}

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const { headers } = request;
  const id = headers['webhook-id'];
  if (request.method !== 'POST' || typeof id !== 'string') {
    console.log(`${formatTime()}  ${request.method} ${request.url}: not a webhook`);
    response.writeHead(400).end();
    return;
  }
  const signatureError = findSignatureError(await signatureKey, body, headers);
  const attempts = (seen.get(id)?.attempts ?? 0) + 1;
  const isDuplicate = seen.get(id)?.wasAccepted === true;
  seen.set(id, { attempts, wasAccepted: isDuplicate });

  const result =
    signatureError === undefined
      ? await createResponse({ headers, body }, attempts)
      : { ...NOTHING, status: 401, note: 'responded 401' };
  const isSuccess = result.status !== undefined && result.status < 300;
  seen.set(id, { attempts, wasAccepted: isDuplicate || isSuccess });
  const notes = [
    signatureError ?? 'signature valid',
    ...(attempts > 1 ? [`attempt ${attempts}`] : []),
    ...(isDuplicate ? ['DUPLICATE: already got a 2xx'] : []),
    result.note,
  ];
  printEvent(body.toString(), id, String(headers['service-event']), notes.join(', '));

  await wait(options.delay, undefined, { signal: ending.signal });
  if (result.status === undefined) request.socket.destroy();
  else response.writeHead(result.status, result.headers).end(result.body);
}

async function createResponse(
  webhook: { headers: IncomingMessage['headers']; body: Buffer },
  attempt: number,
): Promise<ListenerResponse> {
  const { forwardTo, forwardTimeout, retryAfter } = options;
  if (forwardTo !== undefined) return forward(forwardTo, webhook, forwardTimeout, ending.signal);
  const status = chooseStatus(attempt);
  if (status === undefined) return { ...NOTHING, status, note: 'dropped' };
  const isPutOff = retryAfter !== undefined && status >= 300;
  return {
    ...NOTHING,
    ...(isPutOff && { headers: { 'retry-after': `${retryAfter}` } }),
    status,
    note: `responded ${status}`,
  };
}

function printEvent(body: string, id: string, event: string, notes: string): void {
  const { type, data, changed } = parseContent(body, id, event);
  console.log(`${formatTime()}  ${type}  ${id}  ${notes}`);
  console.log(indent(data));
  if (changed !== undefined) console.log(`  previous_attributes\n${indent(changed)}`);
}

/** @returns undefined to drop the connection */
function chooseStatus(attempt: number): number | undefined {
  const { status, fail, retryAfter, drop } = options;
  const isToFail = fail === undefined || attempt <= fail;
  if (!isToFail) return 204;
  if (drop) return undefined;
  if (status !== undefined) return status;
  if (retryAfter !== undefined) return 503;
  return fail === undefined ? 204 : 500;
}

/** Parses a webhook. An envelope contains its own id; anything else comes from a flat subscription. */
function parseContent(
  body: string,
  id: string,
  header: string,
): { type: string; data: unknown; changed?: unknown } {
  let json: unknown;
  try {
    json = JSON.parse(body);
  } catch {
    return { type: header, data: body };
  }
  const {
    id: own,
    type,
    data,
    previous_attributes: changed,
  } = Object(json) as Partial<EnvelopeJson>;
  if (own !== id || type === undefined) return { type: `${header} (flat)`, data: json };
  return { type, data, changed };
}

function indent(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value, undefined, 2);
  return text.replaceAll(/^/gm, '    ');
}

function formatTime(): string {
  return new Date().toTimeString().slice(0, 8);
}
