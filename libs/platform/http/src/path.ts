import type { FastifyRequest } from 'fastify';
import { NotFoundError } from '#kernel/errors.js';

/**
 * The pattern of the route that will answer (`/api/v1/accounts/:account_id`), else the path asked for. Access
 * is decided by this and never by the path as it was spelled: the router decodes escapes.
 */
export function getRoute({ routeOptions, url }: FastifyRequest): string {
  const pattern = routeOptions.url;
  return pattern !== undefined && pattern !== '*' ? pattern : decodeURI(getPath(url));
}

export const API = '/api/v1';

/** Whether a route, or a path, is one of the API. */
export function isApiRoute(route: string): boolean {
  return route === API || route.startsWith(`${API}/`);
}

/** For metrics: all paths without a route count as one. */
export function getRoutePattern({ routeOptions: { url } }: FastifyRequest): string {
  return url === undefined || url === '*' ? 'none' : url;
}

/** Without query and fragment, and without the origin that an absolute request target begins with. */
export function getPath(target: string): string {
  const [path = ''] = target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1);
  return path;
}

const ID = /^\d{1,9}$/;
const HARMLESS_SEGMENT = /^(?:[a-z][a-z_-]{0,30}|v\d|\d{1,9}|)$/;

/**
 * The path as it may be logged: in the place of an id, or on a path that does not exist, callers may have put
 * anybody's address or number.
 * @param pattern of the route that answered; undefined: none did
 */
export function getLoggablePath(target: string, pattern: string | undefined): string {
  const segments = getPath(target).split('/');
  const expected = pattern === undefined || pattern === '*' ? [] : pattern.split('/');
  const loggable = segments.map((segment, i) => {
    const isId = expected[i]?.startsWith(':') ?? false;
    const isLoggable = isId
      ? ID.test(segment)
      : segment === expected[i] || HARMLESS_SEGMENT.test(segment);
    return isLoggable ? segment : (expected[i] ?? '…');
  });
  return loggable.join('/');
}

/**
 * A path with broken escapes cannot exist, nor one with NUL, which no database takes. Escaped once more it can be
 * routed, so that its 404 passes the same checks and carries the same headers as any other.
 */
export function toDecodableTarget(target: string): string {
  const path = getPath(target);
  try {
    if (!decodeURI(path).includes('\0')) return target;
  } catch {
    // As with NUL.
  }
  return target.replace(path, () => path.replaceAll('%', '%25'));
}

/** A path id: anything that cannot be the id of a record is a record that does not exist. */
export function parsePathId(value: string): number {
  const id = /^\d{1,19}$/.test(value) ? Number(value) : NaN;
  if (!Number.isSafeInteger(id)) throw new NotFoundError('Record');
  return id;
}
