import compress from '@fastify/compress';
import cors from '@fastify/cors';
import helmet from '@fastify/helmet';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Config } from '#kernel/config.js';

const SMALLEST_COMPRESSED = 1024;
const PREFLIGHT_KEPT_SECONDS = 600;
const YEAR_SECONDS = 365 * 24 * 60 * 60;

/** Headers for browsers on every answer, and compression. Pages set their own content security policy. */
export async function installHeaders(server: FastifyInstance, config: Config): Promise<void> {
  await server.register(helmet, {
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
    hsts: config.publicUrl.startsWith('https:') && {
      maxAge: YEAR_SECONDS,
      includeSubDomains: false,
    },
  });
  if (config.corsOrigins.length > 0) await allowOrigins(server, config.corsOrigins);
  await server.register(compress, {
    encodings: ['br', 'gzip'],
    threshold: SMALLEST_COMPRESSED,
    // Request bodies are not decompressed: a small one could expand to any size.
    globalDecompression: false,
  });
  server.addHook('onSend', async (_request, reply) => vary(reply, 'Accept-Encoding'));
}

/** Names a request header that the answer depends on, beside those named already. */
export function vary(reply: FastifyReply, name: string): void {
  const named = String(reply.getHeader('vary') ?? '');
  if (named.toLowerCase().split(/, */).includes(name.toLowerCase())) return;
  reply.header('vary', named === '' ? name : `${named}, ${name}`);
}

/** Whether the client has what bears the tag: RFC 9110, section 13.1.2: weak tags match like strong ones. */
export function isKnown(etag: string, ifNoneMatch: string | undefined): boolean {
  const tags = (ifNoneMatch ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''));
  return tags.some((tag) => tag === '*' || tag === etag);
}

async function allowOrigins(server: FastifyInstance, origins: string[]): Promise<void> {
  const options = {
    origin: origins.includes('*') ? '*' : origins,
    methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
    allowedHeaders: ['Authorization', 'Content-Type', 'Idempotency-Key', 'Prefer', 'X-Request-Id'],
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
    maxAge: PREFLIGHT_KEPT_SECONDS,
  };
  await server.register(cors, {
    // Any other OPTIONS is an ordinary request, which the gate and `answerMethods` handle.
    delegator: (request, done) => done(null, { ...options, preflight: isPreflight(request) }),
  });
}

function isPreflight({ headers }: FastifyRequest): boolean {
  return headers.origin !== undefined && 'access-control-request-method' in headers;
}
