import type { FastifyRequest } from 'fastify';
import { NotFoundError } from '#platform/kernel/errors.js';
import { getRouteConfig } from './route-config.js';

/**
 * Returns the pattern of the request's route (`/api/v1/accounts/:account_id`), or else its path. Access is decided by
 * this and never by the spelling of the path: the router decodes escapes.
 */
export function getRoute(request: FastifyRequest): string {
  const { url: pattern } = getRouteConfig(request);
  return pattern !== undefined && pattern !== '*' ? pattern : decodeURI(getPath(request.url));
}

export const API = '/api/v1';

/** Tells whether a route, or a path, belongs to the API. */
export function isApiRoute(route: string): boolean {
  return route === API || route.startsWith(`${API}/`);
}

export const ADMIN_API = '/api/admin/v1';
/** Describes the admin API to everybody, as /openapi.json does the API. */
export const ADMIN_DOCUMENT = `${ADMIN_API}/openapi.json`;

/** Tells whether a route, or a path, belongs to the admin API. */
export function isAdminRoute(route: string): boolean {
  return route === ADMIN_API || route.startsWith(`${ADMIN_API}/`);
}

/** Returns the path without query and fragment, and without the origin of an absolute request target. */
export function getPath(target: string): string {
  const [path = ''] = target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1);
  return path;
}

const ID = /^\d{1,9}$/;
const HARMLESS_SEGMENT = /^(?:[a-z][a-z_-]{0,30}|v\d|\d{1,9}|)$/;

/**
 * Returns the path with everything removed that could be personal: in the place of an id, or on a path that does not
 * exist, callers may have put anybody's address or number.
 * @param pattern of the request's route; undefined: there is none
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
 * Escapes a path that cannot be decoded (ERR-13) or has NUL, which no database accepts. It can then be routed, so
 * that its 404 passes the same checks and carries the same headers as any other.
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

/** Parses a path id. One that no record can have is a record that does not exist (CONV-30, CONV-31). */
export function parsePathId(value: string): number {
  const id = findPathId(value);
  if (id === undefined) throw new NotFoundError('Record');
  return id;
}

/** Finds the id that a part of a path is; undefined: no record can have it. */
export function findPathId(value: string): number | undefined {
  const id = /^\d{1,19}$/.test(value) ? Number(value) : NaN;
  return Number.isSafeInteger(id) ? id : undefined;
}
