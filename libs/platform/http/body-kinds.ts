import type { FastifyRequest } from 'fastify';
import { getRouteConfig, setRouteConfig } from './route-config.js';

/** A kind of body besides JSON, which a route has to declare. */
type BodyKind = 'form' | 'upload' | 'picture' | 'file';

/** @property ignoresOthers whether a body of another kind counts as none, instead of being refused */
export type BodyConfig = { body?: BodyKind; bodyLimit?: number; ignoresOthers?: boolean };

/** Fields of a form. Of fields with the same name the last counts. */
export type Form = Readonly<Record<string, string | undefined>>;

const PICTURE_TYPES = ['image/png', 'image/jpeg', 'image/webp'] as const;
export type PictureType = (typeof PICTURE_TYPES)[number];
const MAX_PICTURE_BYTES = 2 * 1024 * 1024;

type FileType = 'text/csv' | 'application/x-ndjson';
/** The types under which programs send the same files: browsers on Windows take a CSV file for one of Excel. */
const FILE_TYPES = new Map<string, FileType>([
  ['text/csv', 'text/csv'],
  ['application/csv', 'text/csv'],
  ['application/vnd.ms-excel', 'text/csv'],
  ['text/tab-separated-values', 'text/csv'],
  ['text/plain', 'text/csv'],
  ['application/x-ndjson', 'application/x-ndjson'],
  ['application/ndjson', 'application/x-ndjson'],
  ['application/jsonl', 'application/x-ndjson'],
  ['application/x-jsonlines', 'application/x-ndjson'],
]);

export const MEDIA_TYPES: Readonly<Record<BodyKind, readonly string[]>> = {
  form: ['application/x-www-form-urlencoded'],
  upload: ['multipart/form-data'],
  picture: PICTURE_TYPES,
  file: [...FILE_TYPES.keys()],
};

/** The media type of any bytes, which clients from generators send: the bytes tell what they are. */
export const UNNAMED = 'application/octet-stream';

/** Unregistered name that some programs use for a JPEG. */
export const MISNAMED_JPEG = 'image/jpg';

/** The limit of the texts of an upload, in addition to its file. */
export const MAX_FIELDS_BYTES = 64 * 1024;

/** Declares that the body is a form instead of JSON. */
export function TakesForm(): MethodDecorator {
  return takeBody({ body: 'form' });
}

/** Declares that the body is a form that may be larger than others without a session. */
export function TakesLargeForm(maxBytes: number): MethodDecorator {
  return takeBody({ body: 'form', bodyLimit: maxBytes });
}

/**
 * Declares that the body is a form, and that whatever else comes is ignored: for programs whose request says everything
 * by its address.
 */
export function TakesFormOrAnything(): MethodDecorator {
  return takeBody({ body: 'form', ignoresOthers: true });
}

/** Declares that the body is a form with a file: multipart/form-data instead of JSON. */
export function TakesUpload(maxFileBytes: number): MethodDecorator {
  return takeBody({ body: 'upload', bodyLimit: maxFileBytes + MAX_FIELDS_BYTES });
}

/** Declares that the body is a picture instead of JSON. */
export function TakesPicture(): MethodDecorator {
  return takeBody({ body: 'picture', bodyLimit: MAX_PICTURE_BYTES });
}

/** Declares that the body is a text file instead of JSON. */
export function TakesFile(maxBytes: number): MethodDecorator {
  return takeBody({ body: 'file', bodyLimit: maxBytes });
}

function takeBody(config: BodyConfig): MethodDecorator {
  return setRouteConfig(config);
}

/** Tells whether the route ignores bodies that it does not expect. */
export function ignoresOtherBodies(request: FastifyRequest): boolean {
  return getRouteConfig<BodyConfig>(request).ignoresOthers === true;
}

/** Returns the kind of body that the route takes; undefined: JSON. */
export function getBodyKind(request: FastifyRequest): BodyKind | undefined {
  return getRouteConfig<BodyConfig>(request).body;
}

/** Tells whether the body is of the kind that the route takes. Of other types, which no parser knows, Fastify decides. */
export function isExpectedBody(request: FastifyRequest): boolean {
  const kind = getBodyKind(request);
  const mediaType = getMediaType(request) ?? '';
  if (mediaType === UNNAMED) return kind === 'picture' || kind === 'file';
  const kinds = Object.keys(MEDIA_TYPES) as BodyKind[];
  return kind === kinds.find((candidate) => MEDIA_TYPES[candidate].includes(mediaType));
}

/** Returns the media type of the body, without parameters. */
function getMediaType({ headers }: FastifyRequest): string | undefined {
  const mediaType = headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase();
  return mediaType === MISNAMED_JPEG ? 'image/jpeg' : mediaType;
}

/** Returns the uploaded picture; without a body it is empty, and so of no valid type. */
export function getPicture(request: FastifyRequest): [PictureType, Buffer] {
  const bytes = getBytes(request, 'picture');
  const declared = PICTURE_TYPES.find((type) => type === getMediaType(request));
  return [declared ?? findPictureType(bytes) ?? PICTURE_TYPES[0], bytes];
}

/** Returns the uploaded file; without a body it is empty. */
export function getFile(request: FastifyRequest): { type: FileType; bytes: Buffer } {
  const bytes = getBytes(request, 'file');
  return { type: FILE_TYPES.get(getMediaType(request) ?? '') ?? detectFileType(bytes), bytes };
}

function getBytes(request: FastifyRequest, kind: BodyKind): Buffer {
  if (getBodyKind(request) !== kind)
    throw new Error(`the route declares no body that is a ${kind}`);
  return Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
}

/** Matches the first bytes of each type, in hex; WebP is a RIFF file, whose length comes in between. */
const SIGNATURES: Record<PictureType, RegExp> = {
  'image/png': /^89504e470d0a1a0a/,
  'image/jpeg': /^ffd8ff/,
  'image/webp': /^52494646.{8}57454250/,
};

/** Finds the type by content: what a client says about it proves nothing. */
export function findPictureType(bytes: Buffer): PictureType | undefined {
  const start = bytes.subarray(0, 12).toString('hex');
  return PICTURE_TYPES.find((type) => SIGNATURES[type].test(start));
}

/** Detects NDJSON by its first character, in whatever encoding. */
export function detectFileType(bytes: Buffer): FileType {
  const start = bytes.subarray(0, 16).toString('latin1');
  return /^[^\w"]*\{/.test(start) ? 'application/x-ndjson' : 'text/csv';
}

/** The files of uploads by the name of their field. Of several with the same name the last counts. */
export const uploadedFiles = new WeakMap<object, ReadonlyMap<string, Buffer>>();

/** Returns the file of a field; undefined when none was chosen, for which browsers send an empty one. */
export function findUploadedFile(request: FastifyRequest, field: string): Buffer | undefined {
  const bytes = uploadedFiles.get(request)?.get(field);
  return bytes && bytes.length > 0 ? bytes : undefined;
}
