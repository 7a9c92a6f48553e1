import type { FastifyRequest } from 'fastify';

/**
 * The pattern of the route that will answer (`/api/v1/accounts/:account_id`), else the path asked for.
 * Who may in is decided by this and never by how the path was spelled: the router undoes escapes.
 */
export function routeOf({ routeOptions, url }: FastifyRequest): string {
  const pattern = routeOptions.url;
  return pattern !== undefined && pattern !== '*' ? pattern : decodeURI(pathOf(url));
}

/** Without query and fragment, and without the origin that an absolute request target begins with. */
export function pathOf(target: string): string {
  const [path = ''] = target.replace(/^https?:\/\/[^/?#]*/i, '').split(/[?#]/, 1);
  return path;
}

/**
 * A path with broken escapes names nothing. Escaped once more it can be routed, so that its 404 passes
 * all the checks and carries all the headers of any other.
 */
export function decodable(target: string): string {
  const path = pathOf(target);
  try {
    decodeURI(path);
    return target;
  } catch {
    return target.replace(path, () => path.replaceAll('%', '%25'));
  }
}
