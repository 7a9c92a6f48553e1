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

/** Chooses one of the media types for the client. The first is the default. */
export function negotiateMediaType(
  request: FastifyRequest,
  reply: FastifyReply,
  types: string[],
): string | undefined {
  addVary(reply, 'Accept');
  return new Negotiator(request).mediaType(types);
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
