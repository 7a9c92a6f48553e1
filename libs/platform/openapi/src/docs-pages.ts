import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Config } from '#kernel/config.js';
import { ERROR_PAGE, type ErrorCode } from '#http/error.dto.js';
import { isRetired, VERSION_POLICY } from '#http/versioning.js';

const STYLE = `
body { max-width: 42rem; margin: 2rem auto; padding: 0 1rem; font: 1rem/1.5 system-ui, sans-serif; }
dt { margin-top: 1rem; font-family: ui-monospace, monospace; font-weight: bold; }
dd { margin: 0; }
`;

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'`,
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** Every code that the error body can carry, for people; problem details point here by their type. */
export const MEANINGS: Record<ErrorCode, string> = {
  unauthorized: 'The API token is missing or not in force.',
  rate_limited: 'Too many requests: wait as many seconds as Retry-After says.',
  version_sunset: 'This version of the API is retired.',
  not_found: 'The record or path does not exist, or the token does not reach its store.',
  method_not_allowed: 'The path exists, but takes other methods: those in Allow.',
  validation_failed: 'A field is not as it must be: errors says which and why.',
  insufficient_stamps: 'The customer card holds too few stamps for this reward.',
  reward_inactive: 'The reward is switched off.',
  card_expired: 'The card has expired: it takes no stamps and gives no rewards.',
  stamp_limit_reached: 'One of the limits that the card sets on stamping.',
  malformed_json: 'The body is not JSON.',
  malformed_request: 'What was sent is not an HTTP request.',
  payload_too_large: 'The body is larger than allowed.',
  unsupported_media_type: 'The body is of a media type that this path does not take.',
  header_fields_too_large: 'The header of the request is larger than 16 KiB.',
  request_timeout: 'The request did not arrive whole in time. Nothing was done.',
  idempotency_key_reused: 'The Idempotency-Key was used before, with another body.',
  idempotency_in_progress: 'The first request with this Idempotency-Key is still being answered.',
  unavailable:
    'A part that the request needs is away. Nothing was written: send it again in a moment.',
  internal: 'Something went wrong on our side.',
};

/** Pages of text beside the reference, with nothing to load. */
export function serveDocsPages(server: FastifyInstance, config: Config): void {
  const serve = (path: string, title: string, content: () => string) =>
    server.get(path, (_request, reply) =>
      reply
        .header('content-type', 'text/html; charset=utf-8')
        .header('content-security-policy', POLICY)
        .send(page(title, content())),
    );
  serve(VERSION_POLICY, 'Versions of the API', () => versions(config, new Date()));
  serve(ERROR_PAGE, 'Error codes', codes);
}

function page(title: string, content: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8" />
    <meta name="viewport" content="width=device-width, initial-scale=1" />
    <title>${title}: Inkpad</title>
    <link rel="icon" href="data:," />
    <style>${STYLE}</style>
  </head>
  <body>
    <h1>${title}</h1>
    ${content}
    <p><a href="/docs">All operations</a></p>
  </body>
</html>
`;
}

function versions(config: Config, now: Date): string {
  const { deprecatedAt, sunsetAt } = config.v1;
  const day = (moment: Date) => `<time>${moment.toISOString()}</time>`;
  const since =
    deprecatedAt && `deprecated ${deprecatedAt > now ? 'from' : 'since'} ${day(deprecatedAt)}`;
  const until = sunsetAt && `retired ${isRetired(config, now) ? 'since' : 'from'} ${day(sunsetAt)}`;
  const state =
    [since, until].filter((part) => part !== null).join(', ') || 'current, with no end in sight';
  return `<p>Version v1 is ${state}.</p>
    <h2>What may change</h2>
    <p>The version is part of the path: <code>/api/v1</code>. Within it endpoints, optional parameters,
    response fields and values may be added at any time. Ignore response fields that you do not know.</p>
    <p>A new version, under a path of its own, is what it takes to remove or rename an endpoint, a field or
    an error code, to change the type or meaning of a field, to make an optional parameter required, or to
    take a value from a fixed set.</p>
    <h2>How a version ends</h2>
    <p>From its announcement every answer of the version carries <code>Deprecation</code> (RFC 9745),
    <code>Sunset</code> (RFC 8594) once the end is known, and a <code>Link</code> to this page with
    <code>rel="deprecation"</code>. At least twelve months lie between deprecation and sunset. After the
    sunset every path of the version answers 410 with the code <code>version_sunset</code>. The state can be
    read without a token at <code>/api/v1/status</code>.</p>`;
}

function codes(): string {
  const entries = Object.entries(MEANINGS).map(
    ([code, meaning]) => `<dt id="${code}">${code}</dt><dd>${meaning}</dd>`,
  );
  return `<p>Every failure is JSON with one of these in <code>code</code>. More may be added.</p>
    <dl>${entries.join('\n    ')}</dl>`;
}
