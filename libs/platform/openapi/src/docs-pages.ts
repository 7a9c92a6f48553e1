import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import type { Config } from '#kernel/config.js';
import { CATALOGUE, worded } from '#kernel/error-catalogue.js';
import { ERROR_PAGE } from '#http/error.dto.js';
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

/** Pages of text beside the reference; they load nothing. */
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
    [since, until].filter((part) => part !== null).join(', ') || 'current, and no end is planned';
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
  const entries = Object.entries(CATALOGUE).map(
    ([code, { status, meaning, resolution, advice = resolution }]) =>
      `<dt id="${code}">${code}</dt>
    <dd>${status}: ${escaped(meaning)}</dd>
    <dd>What to do: ${escaped(advice ?? '')}</dd>`,
  );
  return `<p>Every error is JSON with one of these in <code>code</code>, and a link to its place on this page in
    <code>documentation_url</code>. More may be added.</p>
    <dl>${entries.join('\n    ')}</dl>`;
}

/** Advice has placeholders and headers in angle brackets. */
function escaped(text: string): string {
  const { seconds, allowed } = { seconds: 'the', allowed: 'those in Allow' };
  return worded(text, { seconds, allowed }).replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
