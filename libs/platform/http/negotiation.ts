import type { FastifyReply, FastifyRequest } from 'fastify';
import Negotiator from 'negotiator';
import { addVary } from './headers.js';

/** In the order in which they are preferred: brotli is smaller. */
const ENCODINGS = ['br', 'gzip'] as const;

/** Chooses one of the languages for the client, English by default. @param reply gets the header Vary */
export function negotiateLanguage(
  request: Pick<FastifyRequest, 'headers'>,
  languages: string[],
  reply?: FastifyReply,
): string {
  if (reply) addVary(reply, 'Accept-Language');
  return new Negotiator(request).language(languages) ?? 'en';
}

/** A parameter of a media range that is not its weight. Its value may be a quoted string. */
const PARAMETER = /;\s*(?!q\s*=)[^;,="\s]+\s*=\s*(?:"(?:[^"\\]|\\.)*"|[^;,"]*)/gi;

/**
 * Chooses one of the media types for the client (RFC 9110, section 12.5.1). The first is the default. Parameters such as
 * `charset` say nothing about which of them is meant.
 */
export function negotiateMediaType(
  request: Pick<FastifyRequest, 'headers'>,
  reply: FastifyReply,
  types: string[],
): string | undefined {
  addVary(reply, 'Accept');
  const accept = request.headers.accept?.replaceAll(PARAMETER, '').trim() || '*/*';
  return new Negotiator({ headers: { accept } }).mediaType(types);
}

/** Chooses the compression for the client; undefined: none. */
export function negotiateEncoding(request: FastifyRequest): (typeof ENCODINGS)[number] | undefined {
  const accepted = new Negotiator(request).encodings([...ENCODINGS]);
  return ENCODINGS.find((encoding) => accepted.includes(encoding));
}

/** Tells whether the client takes responses that are compressed with gzip. */
export function acceptsGzip(request: FastifyRequest): boolean {
  return new Negotiator(request).encodings(['gzip', 'identity'])[0] === 'gzip';
}
