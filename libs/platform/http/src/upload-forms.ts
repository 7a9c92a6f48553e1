import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Readable } from 'node:stream';
import { InvalidFieldsError } from '#kernel/errors.js';
import { declareMediaTypes, TakesBody } from './body-kinds.js';
import type { Form } from './form-bodies.js';
import { createForm } from './form-parsing.js';
import { readLargeBody } from './large-bodies.js';
import { parseMultipart } from './multipart.js';

const TYPE = 'multipart/form-data';
/** The limit of the fields in addition to the file. */
const MAX_FIELDS_BYTES = 64 * 1024;
/** Far more than any form has. Without it a small body could hold a hundred thousand parts, each an object. */
const MAX_PARTS = 200;

/** The files of a request by the name of their field. Of several with the same name the last counts. */
const files = new WeakMap<object, Map<string, Buffer>>();

/** Declares that the body is a form with a file: multipart/form-data instead of JSON. */
export function TakesUpload(maxFileBytes: number): MethodDecorator {
  return TakesBody('upload', maxFileBytes + MAX_FIELDS_BYTES);
}

/** Returns the file of a field; undefined when none was chosen, for which browsers send an empty one. */
export function findUploadedFile(request: FastifyRequest, field: string): Buffer | undefined {
  const bytes = files.get(request)?.get(field);
  return bytes && bytes.length > 0 ? bytes : undefined;
}

/** Parses forms with files. The body is a `Form`, as of other forms. */
export function installUploadParser(server: FastifyInstance): void {
  declareMediaTypes('upload', [TYPE]);
  server.addContentTypeParser(TYPE, async (request: FastifyRequest, body: Readable) =>
    parseUpload(request, await readLargeBody(request, body)),
  );
}

/** Parses a whole body, whose limit bounds the work. @throws InvalidFieldsError */
function parseUpload(request: FastifyRequest, body: Buffer): Form {
  const parts = parseMultipart(body, request.headers['content-type'] ?? '', MAX_PARTS);
  if (!parts) throw new InvalidFieldsError({ base: ['The form cannot be read'] });
  if (parts.length > MAX_PARTS) {
    throw new InvalidFieldsError({ base: [`The form has more than ${MAX_PARTS} fields`] });
  }
  const uploaded = new Map<string, Buffer>();
  const fields: [string, string][] = [];
  let fieldBytes = 0;
  for (const { name, isFile, bytes } of parts) {
    fieldBytes += name.length + (isFile ? 0 : bytes.length);
    if (isFile) uploaded.set(name, bytes);
    else fields.push([name, bytes.toString()]);
  }
  if (fieldBytes > MAX_FIELDS_BYTES) {
    throw new InvalidFieldsError({
      base: [`The texts of the form have more than ${MAX_FIELDS_BYTES / 1024} KiB`],
    });
  }
  files.set(request, uploaded);
  return createForm(fields);
}
