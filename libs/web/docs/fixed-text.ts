import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { createHash } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { brotliCompress, constants, createBrotliDecompress, gzip } from 'node:zlib';
import { matchesEtag } from '#platform/http/headers.js';
import { negotiateEncoding } from '#platform/http/negotiation.js';

const BROTLI = {
  params: {
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    // The highest quality takes seconds and saves little.
    [constants.BROTLI_PARAM_QUALITY]: 9,
  },
};
const COMPRESS = {
  br: (text: Buffer) => promisify(brotliCompress)(text, BROTLI),
  gzip: (text: Buffer) => promisify(gzip)(text),
};

type Encoding = keyof typeof COMPRESS;

/** A text that does not change while the process runs. */
export type FixedText = { type: string; policy: string; body: string | Buffer };

type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/** Serves a text with an ETag. It is rendered and compressed once, at the first request: most starts serve none. */
export function serveFixed(server: FastifyInstance, path: string, render: () => FixedText): void {
  let handler: Handler | undefined;
  server.get(path, (request, reply) => (handler ??= createHandler(render()))(request, reply));
}

/** Serves a text that may change. @param textNow is called for each request; equal texts are compressed once */
export function serveChanging(
  server: FastifyInstance,
  path: string,
  textNow: () => FixedText & { body: string },
): void {
  let last: { body: string; handler: Handler } | undefined;
  server.get(path, (request, reply) => {
    const text = textNow();
    if (last?.body !== text.body) last = { body: text.body, handler: createHandler(text) };
    return last.handler(request, reply);
  });
}

function createHandler({ type, policy, body: text }: FixedText): Handler {
  const body = Buffer.from(text);
  const tag = computeTag(body);
  const compressed = new Map<Encoding, Promise<Buffer>>();
  return async (request, reply) => {
    const encoding = negotiateEncoding(request);
    const etag = encoding ? `"${tag}-${encoding}"` : `"${tag}"`;
    if (isUnchanged(request, reply, { etag, policy })) return reply.code(304).send();
    reply.type(`${type}; charset=utf-8`);
    if (!encoding) return reply.send(body);
    let compression = compressed.get(encoding);
    if (!compression) compressed.set(encoding, (compression = COMPRESS[encoding](body)));
    return reply.header('content-encoding', encoding).send(await compression);
  };
}

/** Serves a large file that is compressed with brotli, without keeping it in memory. */
export function serveCompressedFile(
  server: FastifyInstance,
  path: string,
  { type, policy, file }: Omit<FixedText, 'body'> & { file: URL },
): void {
  const content = readFileSync(file);
  const tag = computeTag(content);
  const length = content.length;
  server.get(path, async (request, reply) => {
    const isBrotli = negotiateEncoding(request) === 'br';
    const etag = isBrotli ? `"${tag}-br"` : `"${tag}"`;
    if (isUnchanged(request, reply, { etag, policy })) return reply.code(304).send();
    reply.type(`${type}; charset=utf-8`);
    const stream = createReadStream(file);
    if (!isBrotli) return reply.send(stream.pipe(createBrotliDecompress()));
    return reply.headers({ 'content-encoding': 'br', 'content-length': length }).send(stream);
  });
}

/** Serves a file that is not compressed again, with an ETag. @param name under which it is saved, if it is not shown */
export function serveDownload(
  server: FastifyInstance,
  path: string,
  { type, policy, body, name }: FixedText & { name?: string },
): void {
  const etag = `"${computeTag(Buffer.from(body))}"`;
  server.get(path, async (request, reply) => {
    if (isUnchanged(request, reply, { etag, policy })) return reply.code(304).send();
    if (name !== undefined) reply.header('content-disposition', `attachment; filename="${name}"`);
    return reply.type(type).send(body);
  });
}

function computeTag(content: Buffer): string {
  return createHash('sha256').update(content).digest('base64url').slice(0, 22);
}

/** Sets the headers, and tells whether the client has the current version. */
function isUnchanged(
  request: FastifyRequest,
  reply: FastifyReply,
  { etag, policy }: { etag: string; policy: string },
): boolean {
  reply.headers({
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-cache',
    etag,
  });
  return matchesEtag(etag, request.headers['if-none-match']);
}
