import { ERROR_CLASSES } from './error-classes.js';
import { InkpadError, type ErrorBody } from './inkpad-error.js';
import { operations as routes, VERSION } from './operations.js';
import type { Operations, Schemas } from './schema.js';
import type { WebAbortSignal, WebFetch, WebHeaders } from './web-types.js';

export * from './error-classes.js';
export { InkpadError, type ErrorCode } from './inkpad-error.js';

export type { Schemas } from './schema.js';

export type ClientOptions = {
  /** Where the service is, without `/api/v1`. */
  baseUrl: string;
  token: string;
  /** The store of every request whose `path` has no `account_id`. */
  accountId?: number;
  /** Sent with every request. `{ prefer: 'handling=strict' }` finds misspelt fields in tests. */
  headers?: RequestHeaders;
  /** Gives every write an Idempotency-Key of its own, so that it can be sent again safely. Default true. */
  idempotent?: boolean;
  /** How often a request is sent again, at most. Default 2. */
  retries?: number;
  /** For each attempt. The service responds within thirty seconds, or not at all. Default 60. */
  timeoutSeconds?: number;
  /** A Retry-After longer than this is not waited for. Default 60. */
  maxWaitSeconds?: number;
  /** Sends the requests, such as that of undici with the dispatcher of a proxy. */
  fetch?: WebFetch;
};

export type RequestHeaders = Record<string, string | undefined>;

export type CallOptions = {
  /** Of this write. The same key with the same body is done once, however often it is sent. */
  idempotencyKey?: string;
  /** Sent with this request, in place of the client's own of the same name. */
  headers?: RequestHeaders;
  signal?: WebAbortSignal;
};

/** A successful response with its headers: rate limit, `idempotent-replayed`, `x-unknown-parameters`, `x-dry-run`. */
export type ApiResponse<T> = {
  data: T;
  status: number;
  headers: WebHeaders;
  /** To be quoted to whoever runs the service. */
  requestId: string | null;
};

/** Resolves to the body of the response. */
export type ApiPromise<T> = Promise<T> & {
  /** Resolves to the body with status, headers and request id. */
  withResponse(): Promise<ApiResponse<T>>;
};

export type OperationId = keyof typeof routes;

/** The body of a successful response: text where it is not JSON, undefined without one. */
export type Result<Id extends OperationId> = Operations[Id]['result'];

type OptionalField<Name extends string, T> = [T] extends [undefined]
  ? { [N in Name]?: never }
  : undefined extends T
    ? { [N in Name]?: Exclude<T, undefined> }
    : { [N in Name]: T };

/** The ids of a path; those that the client has a default for may be left out. */
type Path<Id extends OperationId, Default extends string> = [Default] extends [never]
  ? Operations[Id]['path']
  : WithoutDefaults<Operations[Id]['path'], Default>;
type WithoutDefaults<Ids, Default extends string> = [Ids] extends [undefined]
  ? undefined
  : Exclude<keyof Ids, Default> extends never
    ? Partial<Ids> | undefined
    : Omit<Ids, Default> & Partial<Pick<Ids, Default & keyof Ids>>;

/** Lets a caller pass a value on that they may not have, also with exactOptionalPropertyTypes: it is not sent then. */
type OrUndefined<Query> = { [Name in keyof Query]: Query[Name] | undefined };

/**
 * Path ids, query and body of an operation, as far as it has them.
 * @template Default the ids that the client has a default for
 */
export type Params<Id extends OperationId, Default extends string = never> = OptionalField<
  'path',
  Path<Id, Default>
> &
  OptionalField<'query', OrUndefined<Operations[Id]['query']>> &
  OptionalField<'body', Operations[Id]['body']>;

type Arguments<Id extends OperationId, Default extends string> =
  Record<never, never> extends Params<Id, Default>
    ? [params?: Params<Id, Default> & CallOptions]
    : [params: Params<Id, Default> & CallOptions];

type Element<Id extends OperationId> =
  Result<Id> extends readonly (infer E)[]
    ? E
    : Result<Id> extends { customers: readonly (infer C)[] }
      ? C
      : never;

/** The operations that return a list. */
export type ListId = {
  [Id in OperationId]: [Element<Id>] extends [never] ? never : Id;
}[OperationId];

/** @template Default the ids that may be left out: `account_id` if the client was created with an `accountId` */
export type InkpadClient<Default extends 'account_id' = never> = {
  readonly [Id in OperationId]: (...params: Arguments<Id, Default>) => ApiPromise<Result<Id>>;
} & {
  /** Every element of a list, page after page. */
  readonly iterate: <Id extends ListId>(
    id: Id,
    ...params: Arguments<Id, Default>
  ) => AsyncGenerator<Element<Id>, void, undefined>;
};

const runtime = globalThis.process?.versions?.node;
const USER_AGENT = `inkpad-typescript/${VERSION}${runtime ? ` node/${runtime}` : ''}`;

type AnyParams = CallOptions & {
  path?: Record<string, string | number>;
  query?: Record<string, unknown>;
  body?: unknown;
};

type Route = { method: string; path: string; accept?: string };

type Done = { body: unknown; status: number; headers: Headers };

/** One method for each operation of the API, by its operationId. */
export function createClient(
  options: ClientOptions & { accountId: number },
): InkpadClient<'account_id'>;
export function createClient(options: ClientOptions): InkpadClient;
export function createClient(options: ClientOptions): InkpadClient {
  const base = checkBaseUrl(options.baseUrl);
  // One that was read from a file ends with the end of its line.
  const token = options.token?.trim();
  if (!token) throw new TypeError('token is empty');
  // The error of fetch about such a header quotes the token, which would end up in logs.
  if (!/^[!-~]+$/.test(token)) throw new TypeError('token has characters that no token has');
  const checked = { ...options, token };
  const send = (id: OperationId, params: AnyParams = {}) => request(checked, base, id, params);
  const calls = Object.fromEntries(
    (Object.keys(routes) as OperationId[]).map((id) => [
      id,
      (params?: AnyParams) => createApiPromise(send(id, params)),
    ]),
  );
  const iterate = (id: OperationId, params?: AnyParams) =>
    elements(
      (query) => send(id, { ...params, query: { ...params?.query, ...query } }),
      // By id, so that nobody is missing or comes twice because others are created meanwhile.
      id === 'listCustomers' ? { cursor: '' } : {},
    );
  return { ...calls, iterate } as unknown as InkpadClient;
}

function createApiPromise(done: Promise<Done>): ApiPromise<unknown> {
  const data = done.then(({ body }) => body);
  return Object.assign(data, {
    withResponse: () => {
      // Whoever takes the response does not wait for the body alone: its failure would be an unhandled one.
      data.catch(() => undefined);
      return done.then(({ body, status, headers }) => ({
        data: body,
        status,
        headers,
        requestId: headers.get('x-request-id'),
      }));
    },
  });
}

async function* elements(
  page: (query: Record<string, unknown>) => Promise<Done>,
  first: Record<string, unknown>,
): AsyncGenerator<unknown, void, undefined> {
  let query: Record<string, unknown> | undefined = first;
  while (query) {
    const { body, headers }: Done = await page(query);
    yield* Array.isArray(body) ? body : (body as Schemas['CustomerList']).customers;
    query = nextOf(headers.get('link'));
  }
}

/** The query of `<…?limit=100&cursor=…>; rel="next"` (RFC 8288). */
function nextOf(link: string | null): Record<string, string> | undefined {
  const target = /<([^>]*)>\s*;[^,]*rel="?next"?/.exec(link ?? '')?.[1];
  if (target === undefined) return undefined;
  return Object.fromEntries(new URL(target, 'http://relative.invalid').searchParams);
}

async function request(
  options: ClientOptions,
  base: string,
  id: OperationId,
  params: AnyParams,
): Promise<Done> {
  const { method, path, accept = 'application/json' }: Route = routes[id];
  const { body, query = {} } = params;
  const signal = params.signal as AbortSignal | undefined;
  const url = new URL(base + fillIn(path, { account_id: options.accountId, ...params.path }));
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
  }
  const isRead = method === 'GET';
  // Made here, because a key that no header can hold is no reason to try again.
  const headers = createHeaders(options, accept, params);
  if (!isRead && options.idempotent !== false && !headers.has('idempotency-key')) {
    headers.set('idempotency-key', globalThis.crypto.randomUUID());
  }
  const init: RequestInit = {
    method,
    headers,
    ...(body !== undefined && { body: body instanceof Blob ? body : JSON.stringify(body) }),
    // A redirected POST would become a GET.
    redirect: 'manual',
  };
  // Repeats a request that may have been executed only where a repetition changes nothing.
  let left = isRead || headers.has('idempotency-key') ? (options.retries ?? 2) : 0;
  for (let tried = 0; ; tried++, left--) {
    signal?.throwIfAborted();
    const outcome = await attempt(options, url, { init, accept, signal });
    if (!(outcome instanceof InkpadError)) return outcome;
    const isTooLong = (outcome.retryAfter ?? 0) > (options.maxWaitSeconds ?? 60);
    if (left <= 0 || isTooLong || !isTemporary(outcome)) throw outcome;
    await pause(waitBefore(tried, outcome), signal);
  }
}

function createHeaders(
  options: ClientOptions,
  accept: string,
  { body, idempotencyKey, ...params }: AnyParams,
): Headers {
  const headers = new Headers({
    accept,
    authorization: `Bearer ${options.token}`,
    'user-agent': USER_AGENT,
  });
  // fetch sends the media type of a Blob with it.
  if (body !== undefined && !(body instanceof Blob))
    headers.set('content-type', 'application/json');
  for (const own of [options.headers, params.headers, { 'idempotency-key': idempotencyKey }]) {
    for (const [name, value] of Object.entries(own ?? {})) {
      if (value !== undefined) headers.set(name, value);
    }
  }
  return headers;
}

/** @throws only what the caller's signal was aborted with */
async function attempt(
  options: ClientOptions,
  url: URL,
  { init, accept, signal }: { init: RequestInit; accept: string; signal: AbortSignal | undefined },
): Promise<Done | InkpadError> {
  // It takes whole milliseconds alone.
  const timeout = AbortSignal.timeout(Math.ceil((options.timeoutSeconds ?? 60) * 1000));
  try {
    const response = await ((options.fetch as typeof fetch | undefined) ?? fetch)(url, {
      ...init,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    const { ok, status, headers } = response;
    const text = await response.text();
    const [mediaType = ''] = (headers.get('content-type') ?? '').split(';');
    // A proxy's page is no result either.
    const isText = accept !== 'application/json' && accept.split(', ').includes(mediaType);
    const body = isText ? text : parseJson(text);
    if (ok && (body !== undefined || status === 204)) return { body, status, headers };
    return createError(status, typeof body === 'object' ? (body ?? {}) : {}, { headers });
  } catch (cause) {
    if (signal?.aborted) throw signal.reason;
    const details: ErrorBody = timeout.aborted
      ? { code: 'timed_out', error: 'The service took too long' }
      : { code: 'no_response', error: `No response from the service: ${getReason(cause)}` };
    return createError(0, details, { cause });
  }
}

function createError(
  status: number,
  body: ErrorBody,
  details: { headers?: Headers; cause?: unknown },
): InkpadError {
  const classes: Record<string, typeof InkpadError> = ERROR_CLASSES;
  const { code = '' } = body;
  const Class = Object.hasOwn(classes, code) ? (classes[code] ?? InkpadError) : InkpadError;
  return new Class(status, body, details);
}

/** Reads the reason of a failed fetch from the error's cause. */
function getReason(error: unknown): string {
  const { cause } = Object(error) as { cause?: unknown };
  const { code, message } = Object(cause ?? error) as { code?: unknown; message?: unknown };
  return String(message || code || error);
}

function checkBaseUrl(baseUrl: string): string {
  if (!URL.canParse(baseUrl) || !/^https?:$/.test(new URL(baseUrl).protocol)) {
    throw new TypeError('baseUrl must be an http or https URL');
  }
  const { origin, pathname, username, search, hash } = new URL(baseUrl);
  if (username || search || hash) {
    throw new TypeError('baseUrl must have no user, query or fragment');
  }
  const path = pathname.replace(/\/+$/, '');
  if (path.endsWith('/api/v1')) throw new TypeError('baseUrl must end before /api/v1');
  return origin + path;
}

function fillIn(path: string, ids: Record<string, unknown>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const id = ids[name];
    const text = typeof id === 'string' || Number.isInteger(id) ? String(id) : '';
    // A path with .. in it would lead to another operation.
    if (['', '.', '..'].includes(text.trim())) {
      throw new TypeError(`${name} is missing: ${JSON.stringify(id)} is no id`);
    }
    return encodeURIComponent(text);
  });
}

function isTemporary({ status, code }: InkpadError): boolean {
  return (
    [408, 429, 500, 502, 503, 504].includes(status) ||
    code === 'no_response' ||
    code === 'timed_out' ||
    code === 'idempotency_in_progress'
  );
}

/** Seconds, spread so that clients that were refused together do not come back together. */
function waitBefore(tried: number, { retryAfter }: InkpadError): number {
  if (retryAfter !== null) return retryAfter * (1 + Math.random() / 4);
  return 2 ** tried * (0.5 + Math.random() / 2);
}

function parseJson(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Not the service's own response: a proxy's page, for example.
    return undefined;
  }
}

function pause(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, seconds * 1000);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    signal?.addEventListener('abort', stop, { once: true });
  });
}
