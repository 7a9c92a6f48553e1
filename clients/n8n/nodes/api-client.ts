import {
  NodeApiError,
  type IDataObject,
  type IExecuteFunctions,
  type IHookFunctions,
  type IHttpRequestMethods,
  type ILoadOptionsFunctions,
  type IN8nHttpFullResponse,
  type JsonObject,
} from 'n8n-workflow';
import { describeError } from './api-error';

export type ApiContext = IExecuteFunctions | IHookFunctions | ILoadOptionsFunctions;

export type ApiRequest = {
  method: IHttpRequestMethods;
  /** Below `/api/v1`. */
  path: string;
  query?: IDataObject;
  body?: IDataObject;
  idempotencyKey?: string;
  /** The input item that the request is for. */
  itemIndex?: number;
};

export type ApiResponse = { status: number; body: unknown; headers: IDataObject };

/** Sends a request with the token of the credentials. Throws what the API responds with, and its advice. */
export async function sendRequest(context: ApiContext, request: ApiRequest): Promise<ApiResponse> {
  const response = await sendAnyStatus(context, request);
  if (response.status < 400) return response;
  throw new NodeApiError(context.getNode(), response.body as JsonObject, {
    ...describeError(response.status, response.body),
    ...(request.itemIndex === undefined ? {} : { itemIndex: request.itemIndex }),
  });
}

/** Sends a request. @returns undefined if what it asks for does not exist */
export async function findResource(
  context: ApiContext,
  path: string,
): Promise<IDataObject | undefined> {
  const response = await sendAnyStatus(context, { method: 'GET', path });
  if (response.status === 404) return undefined;
  if (response.status < 400) return response.body as IDataObject;
  throw new NodeApiError(
    context.getNode(),
    response.body as JsonObject,
    describeError(response.status, response.body),
  );
}

/** Reads a list page by page, as the Link header says. @param limit the number of elements at most */
export async function readList(
  context: ApiContext,
  request: Omit<ApiRequest, 'method' | 'body'>,
  limit = Number.POSITIVE_INFINITY,
): Promise<IDataObject[]> {
  const elements: IDataObject[] = [];
  let query: IDataObject | undefined = request.query ?? {};
  while (query && elements.length < limit) {
    const page = await sendRequest(context, { ...request, method: 'GET', query });
    elements.push(...getElements(page.body));
    query = parseNextQuery(page.headers['link']);
  }
  return elements.slice(0, Math.min(limit, elements.length));
}

/** Customers come in an object, together with the number of pages. */
function getElements(body: unknown): IDataObject[] {
  if (Array.isArray(body)) return body as IDataObject[];
  const { customers = [] } = body as { customers?: IDataObject[] };
  return customers;
}

/**
 * Parses the query of the next page. Its address is not used: a proxy may serve Inkpad under another one, and the token
 * must not go anywhere else.
 */
export function parseNextQuery(link: unknown): IDataObject | undefined {
  if (typeof link !== 'string') return undefined;
  const url = /<([^>]*)>\s*;[^,<]*\brel="?next"?/.exec(link)?.[1];
  const search = url?.split('?')[1];
  if (search === undefined) return undefined;
  return Object.fromEntries(new URLSearchParams(search));
}

async function sendAnyStatus(context: ApiContext, request: ApiRequest): Promise<ApiResponse> {
  const { baseUrl } = await context.getCredentials<{ baseUrl: string }>('inkpadApi');
  const response = (await context.helpers.httpRequestWithAuthentication.call(context, 'inkpadApi', {
    method: request.method,
    url: `${baseUrl.trim().replace(/\/+$/, '')}/api/v1${request.path}`,
    ...(request.query ? { qs: request.query } : {}),
    ...(request.body ? { body: request.body } : {}),
    headers: request.idempotencyKey ? { 'Idempotency-Key': request.idempotencyKey } : {},
    json: true,
    returnFullResponse: true,
    ignoreHttpStatusErrors: true,
  })) as IN8nHttpFullResponse;
  return { status: response.statusCode, body: response.body, headers: response.headers };
}
