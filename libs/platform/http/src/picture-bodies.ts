import { errorCodes, type FastifyInstance, type FastifyRequest } from 'fastify';
import { hasBody } from './request-bodies.js';
import { setRouteConfig } from './route-config.js';

const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/webp'] as const;
export type PictureType = (typeof PICTURE_TYPES)[number];

/** Matches the first bytes of each type, in hex; WebP is a RIFF file, whose length comes in between. */
const SIGNATURES: Record<PictureType, RegExp> = {
  'image/png': /^89504e470d0a1a0a/,
  'image/jpeg': /^ffd8ff/,
  'image/webp': /^52494646.{8}57454250/,
};

/** The media type of any bytes, which clients from generators send: the bytes tell what they are. */
export const UNNAMED = 'application/octet-stream';

/** Unregistered name that some programs use for a JPEG. */
const MISNAMED_JPEG = 'image/jpg';

const MAX_BYTES = 2 * 1024 * 1024;

type BodyConfig = { body?: string; bodyLimit?: number };

/** Declares that the body is a picture instead of JSON: a Buffer, or undefined when there is none. */
export function TakesPicture(): MethodDecorator {
  const config: BodyConfig = { body: 'picture', bodyLimit: MAX_BYTES };
  return setRouteConfig(config);
}

/** Parses pictures. Media types that the route does not take are 415, before the body is read. */
export function installPictureParser(server: FastifyInstance): void {
  server.addHook('preParsing', (request, _reply, _body, done) => {
    if (!hasBody(request)) return done();
    // What is no picture, on a route that takes none, is left to the parser of JSON.
    const isUnnamed = getMediaType(request) === UNNAMED;
    const isPicture = getPictureType(request) !== undefined;
    if (isUnnamed ? takesBytes(request) : takesPicture(request) === isPicture) return done();
    throw new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE(request.headers['content-type'] ?? 'none');
  });
  server.addContentTypeParser(
    [...PICTURE_TYPES, MISNAMED_JPEG, UNNAMED],
    { parseAs: 'buffer' },
    (_request: FastifyRequest, body: Buffer, done) => done(null, body),
  );
}

/** Returns the uploaded picture; without a body it is empty, and so of no valid type. */
export function getPicture(request: FastifyRequest): [PictureType, Buffer] {
  if (!takesPicture(request)) throw new Error('the route does not declare that it takes pictures');
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

/** Returns the media type of the body, without parameters. */
export function getMediaType({ headers }: FastifyRequest): string | undefined {
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  return mediaType === MISNAMED_JPEG ? 'image/jpeg' : mediaType;
}

/** Tells whether the body is a picture or another file. */
function takesBytes({ routeOptions }: FastifyRequest): boolean {
  return (routeOptions.config as BodyConfig).body !== undefined;
}

function takesPicture({ routeOptions }: FastifyRequest): boolean {
  return (routeOptions.config as BodyConfig).body === 'picture';
}
