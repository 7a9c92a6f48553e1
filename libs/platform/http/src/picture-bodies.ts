import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  declareMediaTypes,
  getBodyKind,
  getMediaType,
  MISNAMED_JPEG,
  TakesBody,
  UNNAMED,
} from './body-kinds.js';
import { readLargeBody } from './large-bodies.js';

const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/webp'] as const;
export type PictureType = (typeof PICTURE_TYPES)[number];

/** Matches the first bytes of each type, in hex; WebP is a RIFF file, whose length comes in between. */
const SIGNATURES: Record<PictureType, RegExp> = {
  'image/png': /^89504e470d0a1a0a/,
  'image/jpeg': /^ffd8ff/,
  'image/webp': /^52494646.{8}57454250/,
};

const MAX_BYTES = 2 * 1024 * 1024;

/** Declares that the body is a picture instead of JSON: a Buffer, or undefined when there is none. */
export function TakesPicture(): MethodDecorator {
  return TakesBody('picture', MAX_BYTES);
}

/** Parses pictures, and bytes of no type: text files may come as such, too. */
export function installPictureParser(server: FastifyInstance): void {
  declareMediaTypes('picture', PICTURE_TYPES);
  server.addContentTypeParser([...PICTURE_TYPES, MISNAMED_JPEG, UNNAMED], readLargeBody);
}

/** Returns the uploaded picture; without a body it is empty, and so of no valid type. */
export function getPicture(request: FastifyRequest): [PictureType, Buffer] {
  if (getBodyKind(request) !== 'picture')
    throw new Error('the route does not declare that it takes pictures');
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  return [getPictureType(request) ?? findPictureType(body) ?? PICTURE_TYPES[0], body];
}

/** Finds the type by content: what a client says about it proves nothing. */
export function findPictureType(bytes: Buffer): PictureType | undefined {
  const start = bytes.subarray(0, 12).toString('hex');
  return PICTURE_TYPES.find((type) => SIGNATURES[type].test(start));
}

function getPictureType(request: FastifyRequest): PictureType | undefined {
  const mediaType = getMediaType(request);
  return PICTURE_TYPES.find((type) => type === mediaType);
}
