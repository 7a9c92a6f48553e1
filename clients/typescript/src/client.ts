import { operations as routes } from './operations.js';
import type { components, operations } from './schema.js';

export type Schemas = components['schemas'];

export type ClientOptions = {
  /** Where the service is, without a path. */
  baseUrl: string;
  token: string;
  /** Gives every write an Idempotency-Key of its own, so that it can be sent again safely. */
  idempotent?: boolean;
  /** How often a request is sent again, at most. Default 2. */
  retries?: number;
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
  : T extends { content: { 'image/png': unknown } }
    ? Blob
    : undefined;
type Responses<Id extends OperationId> = Operation<Id>['responses'];

/** What an operation answers when it was done; nothing where there is no body. */
export type Answer<Id extends OperationId> = Json<
  Responses<Id>[keyof Responses<Id> & (200 | 201 | 204)]
>;

type Given<Name extends string, T> = [T] extends [undefined]
  ? { [N in Name]?: never }
  : undefined extends T
    ? { [N in Name]?: Exclude<T, undefined> }
    : { [N in Name]: T };

/** Path ids, query and body of an operation, as far as it has them. */
export type Params<Id extends OperationId> = Given<'path', Operation<Id>['parameters']['path']> &
  Given<'query', Operation<Id>['parameters']['query']> &
  Given<'body', Body<Id>>;

type Call<Id extends OperationId> =
  Record<never, never> extends Params<Id>
    ? (params?: Params<Id> & CallOptions) => Promise<Answer<Id>>
    : (params: Params<Id> & CallOptions) => Promise<Answer<Id>>;

type Element<Id extends OperationId> =
  Answer<Id> extends readonly (infer E)[]
    ? E
    : Answer<Id> extends { customers: readonly (infer C)[] }
      ? C
      : never;

/** The operations that answer a list. */
export type ListId = {
  [Id in OperationId]: [Element<Id>] extends [never] ? never : Id;
}[OperationId];

export type InkpadClient = { readonly [Id in OperationId]: Call<Id> } & {
  /** Every element of a list, page after page. */
  readonly iterate: <Id extends ListId>(
    id: Id,
    params: Parameters<Call<Id>>[0],
  ) => AsyncGenerator<Element<Id>, void, undefined>;
};

/** A request that was refused, or could not be done. */
export class InkpadError extends Error {
  override readonly name = 'InkpadError';
  readonly status: number;
  /** For programs; `unknown` when the answer was not the service's own. */
  readonly code: Schemas['Error']['code'] | 'unknown';
  /** On 422: messages by field; `base` is a fault of the whole record. */
  readonly errors: Record<string, string[]>;
  readonly resolution: string | undefined;
  readonly requestId: string | null;
  /** Seconds. */
  readonly retryAfter: number | null;

  constructor(status: number, headers: Headers, body: unknown) {
    const payload = (typeof body === 'object' && body !== null ? body : {}) as Partial<
      Schemas['Error']
    >;
    super(payload.error ?? `The service answered ${status}`);
    this.status = status;
    this.code = payload.code ?? 'unknown';
    this.errors = payload.errors ?? {};
    this.resolution = payload.resolution;
    this.requestId = payload.request_id ?? headers.get('x-request-id');
    this.retryAfter = secondsOf(headers.get('retry-after'));
  }
}

type AnyParams = CallOptions & {
  path?: Record<string, string | number>;
  query?: Record<string, unknown>;
  body?: unknown;
};

type Done = { body: unknown; headers: Headers };

/** One method for each operation of the API, by its operationId. */
export function createClient(options: ClientOptions): InkpadClient {
  const send = (id: OperationId, params: AnyParams = {}) => request(options, id, params);
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

async function request(options: ClientOptions, id: OperationId, params: AnyParams): Promise<Done> {
  const { method, path } = routes[id];
  const { body, signal, query = {} } = params;
  const url = new URL(
    path.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(String(params.path?.[name] ?? '')),
    ),
    options.baseUrl,
  );
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
  }
  const isRead = method === 'GET';
  const key =
    params.idempotencyKey ??
    (options.idempotent && !isRead ? globalThis.crypto.randomUUID() : undefined);
  // fetch sends its media type with it.
  const isPicture = body instanceof Blob;
  const init: RequestInit = {
    method,
    headers: {
      accept: 'application/json',
      authorization: `Bearer ${options.token}`,
      ...(body !== undefined && !isPicture && { 'content-type': 'application/json' }),
      ...(key !== undefined && { 'idempotency-key': key }),
    },
    ...(body !== undefined && { body: isPicture ? body : JSON.stringify(body) }),
    ...(signal && { signal }),
  };
  // What may have been done already is sent again only where that changes nothing.
  let left = isRead || key !== undefined ? (options.retries ?? 2) : 0;
  for (let attempt = 0; ; attempt++, left--) {
    const backOff = 2 ** attempt;
    let response: Response;
    try {
      response = await (options.fetch ?? fetch)(url, init);
    } catch (error) {
      if (left <= 0 || signal?.aborted) throw error;
      await pause(backOff, signal);
      continue;
    }
    const text = await response.text();
    const answered = jsonOf(text);
    if (response.ok) return { body: answered, headers: response.headers };
    const failure = new InkpadError(response.status, response.headers, answered);
    const wait = failure.retryAfter ?? backOff;
    if (left <= 0 || !isPassing(failure) || wait > (options.maxWaitSeconds ?? 60)) throw failure;
    await pause(wait, signal);
  }
}

function isPassing({ status, code }: InkpadError): boolean {
  return status === 429 || status === 503 || code === 'idempotency_in_progress';
}

function jsonOf(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // Not the service's own answer: a proxy's page, for example.
    return undefined;
  }
}

function secondsOf(retryAfter: string | null): number | null {
  return retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : null;
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
