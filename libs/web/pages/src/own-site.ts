import type { GatedRequest } from '#http/caller.js';
import { PageError } from './page-error.js';

/**
 * That a form was sent by a page of this service and not by another site through somebody's browser.
 * @param publicUrl the service's
 * @throws PageError
 */
export function assertOwnSite(
  request: Pick<GatedRequest, 'headers' | 'refusal'>,
  publicUrl: string,
): void {
  const { headers } = request;
  const { origin } = new URL(publicUrl);
  // Browsers send the first with every form; the second only over https and to this machine.
  const site = headers['sec-fetch-site'] ?? 'same-origin';
  if (headers.origin === origin && site === 'same-origin') return;
  request.refusal = 'cross_site';
  throw new PageError(
    403,
    'This form came from elsewhere',
    `For your safety, forms are only taken from pages at ${origin}. Please open the page there and try again.`,
  );
}

/**
 * A path of the console to go to after signing in, as far as it is one.
 * @param path by anybody, such as in a link that somebody was sent
 */
export function parseReturnPath(path: string | undefined): string {
  const start = '/app';
  if (path === undefined || !/^\/app(?![^/?])[\x21-\x5b\x5d-\x7e]*$/.test(path)) return start;
  const url = new URL(path, 'http://own.invalid');
  // Resolved, so that dots do not lead out of it.
  const isInside = url.pathname === start || url.pathname.startsWith(`${start}/`);
  return isInside && url.host === 'own.invalid' ? url.pathname + url.search : start;
}
