import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import helmet from 'helmet';
import { IncomingMessage, ServerResponse, type OutgoingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import type { PlatformConfig } from '#kernel/platform-config.js';
import { getRoute } from './path.js';

const COMPRESSION_THRESHOLD_BYTES = 1024;
const PREFLIGHT_MAX_AGE_SECONDS = 600;
/** What scripts of other origins may call; they have no use for pages, which go by a cookie. */
const SCRIPT_ROUTES = /^[/](api|mcp)(?![^/])/;
const YEAR_SECONDS = 365 * 24 * 60 * 60;

/** Adds security headers and compression to every response. Pages set their own content security policy. */
export async function installHeaders(
  server: FastifyInstance,
  config: PlatformConfig,
): Promise<void> {
  const fixed = Object.entries(createSecurityHeaders(config));
  server.addHook('onRequest', (_request, reply, done) => {
    for (const [name, value] of fixed) reply.header(name, value);
    done();
  });
  if (config.corsOrigins.length > 0) await allowOrigins(server, config.corsOrigins);
  // Loaded here: the dispatcher imports this file for what its controllers say about caching, and has no server.
  const { default: compress } = await import('@fastify/compress');
  await server.register(compress, {
    encodings: ['br', 'gzip'],
    threshold: COMPRESSION_THRESHOLD_BYTES,
    // Request bodies are not decompressed: a small one could expand to any size.
    globalDecompression: false,
  });
  server.addHook('onSend', (_request, reply, payload, done) => {
    addVary(reply, 'Accept-Encoding');
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
    if (rawHeaders[i]?.toLowerCase() === name) count++;
  }
  return count;
}

/**
 * Tells whether the client has the version with the tag. Weak tags match like strong ones (RFC 9110, section 13.1.2).
 */
export function matchesEtag(etag: string, ifNoneMatch: string | undefined): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''));
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
    // Any other OPTIONS is an ordinary request, which the request guard and `installMethodChecks` handle.
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
