import { Negotiator } from '@fastify/accept-negotiator';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { isKnown } from '#http/headers.js';

const BROTLI = {
  params: {
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    // The highest quality takes seconds and is hardly smaller.
    [constants.BROTLI_PARAM_QUALITY]: 9,
  },
};
const COMPRESS = {
  br: (text: Buffer) => promisify(brotliCompress)(text, BROTLI),
  gzip: (text: Buffer) => promisify(gzip)(text),
};

type Encoding = keyof typeof COMPRESS;

const negotiator = new Negotiator<Encoding>({ supportedValues: ['br', 'gzip'] });

/** A text that stays the same while the process runs. */
export type FixedText = { type: string; policy: string; body: string | Buffer };

/** Compresses the text once, when it is first asked for, and sends it only to clients that do not have it yet. */
export function serveFixed(server: FastifyInstance, path: string, text: FixedText): void {
  const { type, policy } = text;
  const body = Buffer.from(text.body);
  const tag = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  const compressed = new Map<Encoding, Promise<Buffer>>();

  server.get(path, async (request: FastifyRequest, reply: FastifyReply) => {
    const encoding = negotiator.negotiate(request.headers['accept-encoding'] ?? '');
    const etag = encoding ? `"${tag}-${encoding}"` : `"${tag}"`;
    reply.headers({
      'content-security-policy': policy,
      'x-content-type-options': 'nosniff',
      'cache-control': 'no-cache',
      etag,
    });
    if (isKnown(etag, request.headers['if-none-match'])) return reply.code(304).send();
    reply.type(`${type}; charset=utf-8`);
    if (!encoding) return reply.send(body);
    let made = compressed.get(encoding);
    if (!made) compressed.set(encoding, (made = COMPRESS[encoding](body)));
    return reply.header('content-encoding', encoding).send(await made);
  });
}
