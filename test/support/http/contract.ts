import { afterAll, beforeAll, expect } from '@jest/globals';
import { listTextsByCode } from '#platform/kernel/issues.js';
import { ISSUE_TEXTS } from '#translations/issues.js';
import type { TestDatabase } from '../database/database.js';
import { createResponseChecker } from './openapi.js';
import { Client, startService, type ApiResponse, type Service } from '../services/service.js';
import { sharedService } from '../services/shared-service.js';

/** The body of every failure (docs/api.md, Errors). */
export type Failure = {
  error: string;
  code: string;
  errors?: Record<string, string[]>;
  error_codes?: Record<string, string[]>;
  resolution?: string;
  documentation_url: string;
  request_id: string;
};

/** The same in the form of RFC 9457. */
export type Problem = Failure & {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
};

type Request = { method: string; path: string };
type Check = (request: Request, response: ApiResponse) => void;

/** A client that throws if a response breaks a rule that applies to every response. */
export class ContractClient extends Client {
  constructor(
    baseUrl: string,
    accountId: number,
    token: string | null,
    private readonly check: Check,
    /** Of the user who owns the token. */
    readonly email = '',
  ) {
    super(baseUrl, accountId, token);
  }

  override async send<T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<ApiResponse<T>> {
    const response = await super.send<T>(method, path, body, headers);
    this.check({ method, path }, response);
    return response;
  }

  patch<T>(path: string, body: unknown): Promise<ApiResponse<T>> {
    return this.send<T>('PATCH', path, body);
  }

  delete<T>(path: string): Promise<ApiResponse<T>> {
    return this.send<T>('DELETE', path);
  }

  /** The same service and store with another token, or none. */
  as(token: string | null): ContractClient {
    return new ContractClient(this.baseUrl, this.accountId, token, this.check);
  }
}

/**
 * The service of one file of tests of rules, in its own process: starts before its tests and stops after them.
 * @param settings in addition to the test settings, whose rate limit is too high to be reached by accident
 * @param createDatabase makes the database, where it has to hold something before the service starts
 */
export function useService(
  settings: NodeJS.ProcessEnv = {},
  createDatabase?: () => Promise<TestDatabase>,
) {
  return use(async () => startService(settings, await createDatabase?.()));
}

/**
 * A service with the usual settings that a file of tests of rules shares with others. Start one with `useService` only
 * for other settings, and for a test that needs its parts, kills it, sets its clock or lets it fail.
 */
export function useSharedService() {
  return use<Service>(sharedService);
}

function use<S extends Service>(start: () => Promise<S>) {
  let service: S | undefined;
  let check: Check = () => undefined;

  beforeAll(async () => {
    service = await start();
    check = await createCheck(service.baseUrl);
  });
  afterAll(() => service?.stop());

  const running = () => {
    if (!service) throw new Error('the service runs only while tests do');
    return service;
  };
  type Attributes = Parameters<Service['newStore']>;
  const newStore = async (...attributes: Attributes): Promise<ContractClient> => {
    const { baseUrl, accountId, token, email } = await running().newStore(...attributes);
    return new ContractClient(baseUrl, accountId, token, check, email);
  };
  return {
    get running() {
      return running();
    },
    /** A new store with a token for it. */
    newStore,
    /** The same for all tests of a file, which exists before they run. */
    useStore: (...attributes: Attributes): ContractClient => {
      const store = Object.create(ContractClient.prototype) as ContractClient;
      beforeAll(async () => void Object.assign(store, await newStore(...attributes)));
      return store;
    },
    /** A caller without a token. */
    get anonymous() {
      return new ContractClient(running().baseUrl, 0, null, check);
    },
  };
}

const JSON_TYPE = /^application\/(problem[+])?json(;|$)/;
const JSON_OR_FILE_TYPE = /^(application\/(json|x-ndjson)|text\/csv)(;|$)/;

/** The document is the same for most files; compiling its schemas takes half a second. */
const checkers = new Map<string, ReturnType<typeof createResponseChecker>>();

async function createCheck(baseUrl: string): Promise<Check> {
  const { text, body } = await new Client(baseUrl, 0, null).get<Record<string, unknown>>(
    '/openapi.json',
  );
  const checkDocumented = checkers.get(text) ?? createResponseChecker(body);
  checkers.set(text, checkDocumented);
  // The document does not describe responses to HEAD and OPTIONS.
  const findDocumentedProblems = (request: Request, response: ApiResponse) =>
    ['HEAD', 'OPTIONS'].includes(request.method)
      ? []
      : checkDocumented({ ...request, ...response });
  return (request, response) => {
    if (!isApi(request)) return;
    const problems = [
      ...findUsualProblems(request, response),
      ...findDocumentedProblems(request, response),
    ];
    if (problems.length === 0) return;
    const { method, path } = request;
    throw new Error(
      `${method} ${path} responded ${response.status} against the contract:\n  ${problems.join('\n  ')}\n  ${response.text.slice(0, 500)}`,
    );
  };
}

function isApi({ path }: Request): boolean {
  return /^\/api\/v1([/?]|$)/.test(path);
}

/** Checks what every response must have. */
function findUsualProblems(
  { method }: Request,
  { status, headers, text, body }: ApiResponse,
): string[] {
  const problems: string[] = [];
  const expectThat = (holds: boolean, problem: string) => {
    if (!holds) problems.push(problem);
  };
  const header = (name: string, pattern: RegExp) =>
    expectThat(pattern.test(headers.get(name) ?? ''), `${name}: ${headers.get(name)}`);
  header('ratelimit-limit', /^\d+$/);
  header('ratelimit-remaining', /^\d+$/);
  header('ratelimit-reset', /^([1-9]|[1-5]\d|60)$/);
  header('ratelimit-policy', new RegExp(`^${headers.get('ratelimit-limit')};w=60$`));
  header('x-request-id', /^[A-Za-z0-9._-]{1,128}$/);
  header('cache-control', /^no-store$/);
  if (status === 429 || status === 503) header('retry-after', /^[1-9]\d*$/);
  if (method === 'HEAD') return problems;
  if (status === 204) expectThat(text === '', 'a 204 has no body');
  else if (status >= 300) header('content-type', JSON_TYPE);
  // The document says of which operations the response is a file.
  else header('content-type', JSON_OR_FILE_TYPE);
  if (status < 400) return problems;
  const failure = (body ?? {}) as Partial<Failure>;
  expectThat(isFilled(failure.error), 'error');
  expectThat(/^[a-z_]+$/.test(failure.code ?? ''), `code: ${failure.code}`);
  expectThat(URL.canParse(failure.documentation_url ?? ''), 'documentation_url');
  // A replayed response has the body of the first request and the headers of this one.
  const isRepeated = headers.get('idempotent-replayed') === 'true';
  expectThat(
    isRepeated || failure.request_id === headers.get('x-request-id'),
    `request_id: ${failure.request_id}`,
  );
  const { errors } = failure;
  if (status === 422 || errors !== undefined) {
    const lists = typeof errors === 'object' && errors !== null ? Object.values(errors) : [];
    expectThat(
      lists.length > 0 &&
        lists.every((list) => Array.isArray(list) && list.length > 0 && list.every(isFilled)),
      `errors: ${JSON.stringify(errors)}`,
    );
  }
  return problems;
}

function isFilled(text: unknown): boolean {
  return typeof text === 'string' && text.trim() !== '';
}

/** A 422 that names these fields and no others. */
export function expectRefused(
  response: ApiResponse<unknown>,
  fields: string | string[],
  code = 'validation_failed',
): void {
  const { errors, code: actualCode, error_codes: codes } = response.body as Partial<Failure>;
  expect([response.status, actualCode, Object.keys(errors ?? {}).sort()]).toEqual([
    422,
    code,
    [fields].flat().sort(),
  ]);
  expectCodes(codes, errors);
}

/** ERR-29: for each message the code whose text it has, in the same order. */
export function expectCodes(codes: Failure['error_codes'], errors: Failure['errors']): void {
  const patterns = Object.entries(codes ?? {}).map(([field, list]) => [
    field,
    list.map((code) => expect.stringMatching(toPattern(code))),
  ]);
  expect(errors ?? {}).toEqual(Object.fromEntries(patterns));
}

const TEXTS = listTextsByCode(ISSUE_TEXTS);

/** Matches the messages of a code, whatever their parameters and their place in the field. */
function toPattern(code: string): RegExp {
  const texts = TEXTS.get(code);
  if (!texts) throw new Error(`${code} is not the code of an issue`);
  const patterns = texts.map((text) =>
    text
      .split(/\{[^}]+\}/)
      .map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`))
      .join('.*'),
  );
  return new RegExp(patterns.join('|'), 's');
}

/** A failure with this status and code. */
export function expectFailure(response: ApiResponse<unknown>, status: number, code: string): void {
  expect([response.status, (response.body as Partial<Failure>).code]).toEqual([status, code]);
}
