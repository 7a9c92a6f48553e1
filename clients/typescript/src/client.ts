import { operations as routes } from './operations.js';
import type { components, operations } from './schema.js';

export type Schemas = components['schemas'];

export type ClientOptions = {
  /** Where the service is, without `/api/v1`. */
  baseUrl: string;
  token: string;
  /** Gives every write an Idempotency-Key of its own, so that it can be sent again safely. Default true. */
  idempotent?: boolean;
  /** How often a request is sent again, at most. Default 2. */
  retries?: number;
  /** For each attempt. The service responds within thirty seconds, or not at all. Default 60. */
  timeoutSeconds?: number;
  /** A Retry-After longer than this is not waited for. Default 60. */
  maxWaitSeconds?: number;
  fetch?: typeof fetch;
};

export type CallOptions = {
  /** Of this write. The same key with the same body is done once, however often it is sent. */
  idempotencyKey?: string;
  signal?: AbortSignal;
};

export type OperationId = keyof typeof routes;

type Operation<Id extends OperationId> = operations[Id];
type Body<Id extends OperationId> =
  Operation<Id> extends { requestBody: infer B }
    ? Json<B>
    : Operation<Id> extends { requestBody?: infer B }
      ? Json<B> | undefined
      : undefined;
/** A picture's media type is that of the Blob. */
type Json<T> = T extends { content: { 'application/json': infer J } }
  ? J
  : T extends { content: { 'application/octet-stream': unknown } }
    ? Blob
    : undefined;
type Responses<Id extends OperationId> = Operation<Id>['responses'];

/** The body of a successful response; undefined without one. */
export type Result<Id extends OperationId> = Json<
  Responses<Id>[keyof Responses<Id> & (200 | 201 | 204)]
>;

type OptionalField<Name extends string, T> = [T] extends [undefined]
  ? { [N in Name]?: never }
  : undefined extends T
    ? { [N in Name]?: Exclude<T, undefined> }
    : { [N in Name]: T };

/** Path ids, query and body of an operation, as far as it has them. */
export type Params<Id extends OperationId> = OptionalField<
  'path',
  Operation<Id>['parameters']['path']
> &
  OptionalField<'query', Operation<Id>['parameters']['query']> &
  OptionalField<'body', Body<Id>>;

type Call<Id extends OperationId> =
  Record<never, never> extends Params<Id>
    ? (params?: Params<Id> & CallOptions) => Promise<Result<Id>>
    : (params: Params<Id> & CallOptions) => Promise<Result<Id>>;

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

export type InkpadClient = { readonly [Id in OperationId]: Call<Id> } & {
  /** Every element of a list, page after page. */
  readonly iterate: <Id extends ListId>(
    id: Id,
    ...params: Parameters<Call<Id>>
  ) => AsyncGenerator<Element<Id>, void, undefined>;
};

/** A request that was refused, or could not be done. */
export class InkpadError extends Error {
  override readonly name = 'InkpadError';
  /** 0 when no response came. */
  readonly status: number;
  /** For programs. `no_response` and `timed_out` when none came, `unknown` when it was not the service's own. */
  readonly code: Schemas['ErrorResponse']['code'] | 'no_response' | 'timed_out' | 'unknown';
  /** On 422: messages by field; `base` is a fault of the whole record. */
  readonly errors: Record<string, string[]>;
  /** With the code `taken`: the record that has the value. */
  readonly existing: Schemas['ErrorResponse']['existing'];
  /** How to fix it, for people. */
  readonly resolution: string | undefined;
  readonly documentationUrl: string | undefined;
  /** To be quoted to whoever runs the service. */
  readonly requestId: string | null;
  /** Seconds. */
  readonly retryAfter: number | null;

  constructor(
    status: number,
    { error, code, errors, existing, resolution, documentation_url, request_id }: ErrorBody,
    { headers, cause }: { headers?: Headers; cause?: unknown } = {},
  ) {
    super(typeof error === 'string' ? error : `Not a response of Inkpad (status ${status})`, {
      cause,
    });
    this.status = status;
    this.code = code ?? 'unknown';
    this.errors = errors ?? {};
    this.existing = existing;
    this.resolution = resolution;
    this.documentationUrl = documentation_url;
    this.requestId = request_id ?? headers?.get('x-request-id') ?? null;
    this.retryAfter = secondsOf(headers?.get('retry-after'));
  }
}

type ErrorBody = Partial<Omit<Schemas['ErrorResponse'], 'code'>> & { code?: InkpadError['code'] };

type AnyParams = CallOptions & {
  path?: Record<string, string | number>;
  query?: Record<string, unknown>;
  body?: unknown;
};

type Done = { body: unknown; headers: Headers };

/** One method for each operation of the API, by its operationId. */
export function createClient(options: ClientOptions): InkpadClient {
  const base = checkedBase(options.baseUrl);
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
      async (params?: AnyParams) => (await send(id, params)).body,
    ]),
  );
  const iterate = (id: OperationId, params?: AnyParams) =>
    elements((query) => send(id, { ...params, query: { ...params?.query, ...query } }));
  return { ...calls, iterate } as unknown as InkpadClient;
}

async function* elements(
  page: (query: Record<string, unknown>) => Promise<Done>,
): AsyncGenerator<unknown, void, undefined> {
  let query: Record<string, unknown> | undefined = {};
  while (query) {
    const { body, headers }: Done = await page(query);
    if (Array.isArray(body)) {
      yield* body;
      query = nextOf(headers.get('link'));
    } else {
      const { customers, pagination } = body as Schemas['CustomerList'];
      yield* customers;
      query = pagination.page < pagination.pages ? { page: pagination.page + 1 } : undefined;
    }
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
  const { method, path } = routes[id];
  const { body, signal, query = {} } = params;
  const url = new URL(base + filledIn(path, params.path ?? {}));
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
  }
  const isRead = method === 'GET';
  const isKeyed = !isRead && options.idempotent !== false;
  const key = params.idempotencyKey ?? (isKeyed ? globalThis.crypto.randomUUID() : undefined);
  // fetch sends its media type with it.
  const isPicture = body instanceof Blob;
  const init: RequestInit = {
    method,
    // Made here, because a key that no header can hold is no reason to try again.
    headers: new Headers({
      accept: 'application/json',
      authorization: `Bearer ${options.token}`,
      ...(body !== undefined && !isPicture && { 'content-type': 'application/json' }),
      ...(key !== undefined && { 'idempotency-key': key }),
    }),
    ...(body !== undefined && { body: isPicture ? body : JSON.stringify(body) }),
    // A redirected POST would become a GET.
    redirect: 'manual',
  };
  // Repeats a request that may have been executed only where a repetition changes nothing.
  let left = isRead || key !== undefined ? (options.retries ?? 2) : 0;
  for (let tried = 0; ; tried++, left--) {
    signal?.throwIfAborted();
    const outcome = await attempt(options, url, init, signal);
    if (!(outcome instanceof InkpadError)) return outcome;
    const isTooLong = (outcome.retryAfter ?? 0) > (options.maxWaitSeconds ?? 60);
    if (left <= 0 || isTooLong || !isPassing(outcome)) throw outcome;
    await pause(waitBefore(tried, outcome), signal);
  }
}

/** @throws only what the caller's signal was aborted with */
async function attempt(
  options: ClientOptions,
  url: URL,
  init: RequestInit,
  signal: AbortSignal | undefined,
): Promise<Done | InkpadError> {
  // It takes whole milliseconds alone.
  const timeout = AbortSignal.timeout(Math.ceil((options.timeoutSeconds ?? 60) * 1000));
  try {
    const response = await (options.fetch ?? fetch)(url, {
      ...init,
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    const body = jsonOf(await response.text());
    const { ok, status, headers } = response;
    if (ok && (body !== undefined || status === 204)) return { body, headers };
    return new InkpadError(status, typeof body === 'object' ? (body ?? {}) : {}, { headers });
  } catch (cause) {
    if (signal?.aborted) throw signal.reason;
    const details: ErrorBody = timeout.aborted
      ? { code: 'timed_out', error: 'The service took too long' }
      : { code: 'no_response', error: `No response from the service: ${reasonOf(cause)}` };
    return new InkpadError(0, details, { cause });
  }
}

/** Reads the reason of a failed fetch from the error's cause. */
function reasonOf(error: unknown): string {
  const { cause } = Object(error) as { cause?: unknown };
  const { code, message } = Object(cause ?? error) as { code?: unknown; message?: unknown };
  return String(message || code || error);
}

function checkedBase(baseUrl: string): string {
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

function filledIn(path: string, ids: Record<string, unknown>): string {
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

function isPassing({ status, code }: InkpadError): boolean {
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

function jsonOf(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Not the service's own response: a proxy's page, for example.
    return undefined;
  }
}

/** @param retryAfter seconds, or a date, which proxies send */
function secondsOf(retryAfter: string | null | undefined): number | null {
  if (!retryAfter) return null;
  if (/^\d+$/.test(retryAfter)) return Number(retryAfter);
  const at = Date.parse(retryAfter);
  return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1000);
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
