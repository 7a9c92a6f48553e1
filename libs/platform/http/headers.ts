import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import helmet from 'helmet';
import { IncomingMessage, ServerResponse, type OutgoingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import type { PlatformConfig } from '#platform/kernel/platform-config.js';
import { getRoute } from './path.js';
import { getRouteAccess, type RouteAccess } from './route-access.js';

const COMPRESSION_THRESHOLD_BYTES = 1024;
const PREFLIGHT_MAX_AGE_SECONDS = 600;
/** What scripts of other origins may call; they have no use for pages, which go by a cookie. */
const SCRIPT_ROUTES = /^[/](api|mcp)(?![^/])/;
/** What browsers heed for documents alone. */
const DOCUMENT_HEADERS = new Set([
  'cross-origin-opener-policy',
  'origin-agent-cluster',
  'x-dns-prefetch-control',
  'x-download-options',
  'x-permitted-cross-domain-policies',
  'x-xss-protection',
]);
const YEAR_SECONDS = 365 * 24 * 60 * 60;

/** Creates the headers of every response, by the area of its route. Handlers replace what is otherwise for theirs. */
export function createHeaders(
  config: PlatformConfig,
): Record<RouteAccess['area'], OutgoingHttpHeaders> {
  const page = { ...createSecurityHeaders(config), vary: 'accept-encoding' };
  const forPrograms = Object.entries(page).filter(([name]) => !DOCUMENT_HEADERS.has(name));
  const api = { ...Object.fromEntries(forPrograms), 'cache-control': 'no-store' };
  return { api, admin: api, page };
}

/** Compresses responses, and lets scripts of other origins read those that the settings allow them. */
export async function installEncodings(
  server: FastifyInstance,
  config: PlatformConfig,
): Promise<void> {
  if (config.corsOrigins.length > 0) await allowOrigins(server, config.corsOrigins);
  forbidTransformations(server);
  // Loaded here: the dispatcher imports this file for what its controllers say about caching, and has no server.
  const { default: compress } = await import('@fastify/compress');
  await server.register(compress, {
    encodings: ['br', 'gzip'],
    threshold: COMPRESSION_THRESHOLD_BYTES,
    // Request bodies are not decompressed: a small one could expand to any size.
    globalDecompression: false,
  });
}

/**
 * Keeps intermediaries from changing pages (RFC 9111, section 5.2.2.6): some replace e-mail addresses by a script that the
 * policy of the page does not run, or load other pictures. A 304 renews the headers of a page that is stored.
 */
function forbidTransformations(server: FastifyInstance): void {
  server.addHook('onSend', (request, reply, payload, done) => {
    const type = String(reply.getHeader('content-type') ?? '');
    const isPage = getRouteAccess(request).area === 'page';
    if (type.startsWith('text/html') || (isPage && reply.statusCode === 304)) {
      const caching = String(reply.getHeader('cache-control') ?? '');
      const values = caching.split(/, */).filter((value) => value !== '');
      if (!values.includes('no-transform')) values.push('no-transform');
      reply.header('cache-control', values.join(', '));
    }
    done(null, payload);
  });
}

/** Returns helmet's headers, computed once: it would build the same ones for each request. */
function createSecurityHeaders({
  publicUrl,
  hstsIncludesSubdomains: includeSubDomains,
}: PlatformConfig): OutgoingHttpHeaders {
  const setHeaders = helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
    xFrameOptions: { action: 'deny' },
    hsts: publicUrl.startsWith('https:') && { maxAge: YEAR_SECONDS, includeSubDomains },
  });
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  setHeaders(request, response, (error) => {
    if (error !== undefined) throw error;
  });
  return response.getHeaders();
}

/** Adds a request header to Vary that the response depends on. */
export function addVary(reply: FastifyReply, name: string): void {
  const header = String(reply.getHeader('vary') ?? '');
  if (header === '') reply.header('vary', name);
  else if (!header.toLowerCase().split(/, */).includes(name.toLowerCase())) {
    reply.header('vary', `${header}, ${name}`);
  }
}

/**
 * Counts the header fields of a name; Node.js keeps only the first.
 * @param name in lower case
 */
export function countFields({ rawHeaders }: IncomingMessage, name: string): number {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const field = rawHeaders[i];
    if (field?.length === name.length && field.toLowerCase() === name) count++;
  }
  return count;
}

/**
 * Tells whether the client has the version with the tag. Weak tags match like strong ones (RFC 9110, section 13.1.2).
 */
export function matchesEtag(etag: string, ifNoneMatch: string | undefined): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.some((tag) => tag === '*' || tag === etag);
}

async function allowOrigins(server: FastifyInstance, origins: string[]): Promise<void> {
  const { default: cors } = await import('@fastify/cors');
  const options = {
    origin: origins.includes('*') ? '*' : origins,
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    allowedHeaders: [
      'Authorization',
      'Content-Type',
      'Idempotency-Key',
      'Prefer',
      'X-Request-Id',
      // Of the Model Context Protocol.
      'Mcp-Protocol-Version',
      'Mcp-Method',
      'Mcp-Name',
    ],
    exposedHeaders: [
      'RateLimit-Limit',
      'RateLimit-Remaining',
      'RateLimit-Reset',
      'RateLimit-Policy',
      'Retry-After',
      'X-Request-Id',
      'Link',
      'Deprecation',
      'Sunset',
      'Idempotent-Replayed',
      'X-Dry-Run',
      'X-Unknown-Parameters',
      'Preference-Applied',
    ],
    maxAge: PREFLIGHT_MAX_AGE_SECONDS,
  };
  await server.register(cors, {
    // Any other OPTIONS is an ordinary request, which the request guard handles.
    delegator: (request, done) => {
      const { origin } = options;
      const isForScripts = SCRIPT_ROUTES.test(getRoute(request));
      done(null, {
        ...options,
        origin: isForScripts && origin,
        preflight: isPreflight(request),
      });
    },
  });
}

function isPreflight({ headers }: FastifyRequest): boolean {
  return headers.origin !== undefined && 'access-control-request-method' in headers;
}
