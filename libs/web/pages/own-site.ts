import type { AuthenticatedRequest } from '#platform/http/caller.js';
import { localizeRequest } from './localize.js';
import { PageError } from './page-error.js';

/**
 * Asserts that a page of this service sent the form, and not another site through the user's browser (CSRF).
 * @param publicUrl the service's
 * @throws PageError
 */
export function assertOwnSite(
  request: Pick<AuthenticatedRequest, 'headers' | 'denial'>,
  publicUrl: string,
): void {
  const { headers } = request;
  const { origin } = new URL(publicUrl);
  // Browsers send the first with every form; the second only over https and to this machine.
  const site = headers['sec-fetch-site'] ?? 'same-origin';
  if (headers.origin === origin && site === 'same-origin') return;
  request.denial = 'cross_site';
  const { errors } = localizeRequest(request).t.console;
  throw new PageError(403, errors.otherSite, errors.otherSiteWhy({ site: origin }));
}

/** Returns the query that leads back to a path after signing in; empty for the start page. */
export function toReturnQuery(path: string): string {
  return path === '/app' ? '' : `?return_to=${encodeURIComponent(path)}`;
}

/**
 * Returns the path of the console or the counter to open after signing in, or `/app` if it is neither.
 * @param path untrusted: anybody can send a link with it
 */
export function parseReturnPath(path: string | undefined): string {
  const start = '/app';
  if (path === undefined || !/^\/(app|counter)(?![^/?])[\x21-\x5b\x5d-\x7e]*$/.test(path))
    return start;
  const url = new URL(path, 'http://own.invalid');
  // Resolved first, so that dots do not lead out of it.
  const isInside = /^\/(app|counter)(\/|$)/.test(url.pathname);
  return isInside && url.host === 'own.invalid' ? url.pathname + url.search : start;
}
