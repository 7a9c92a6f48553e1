import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Readable } from 'node:stream';
import { InvalidFieldsError } from '#platform/kernel/errors.js';
import {
  MAX_FIELDS_BYTES,
  MEDIA_TYPES,
  MISNAMED_JPEG,
  UNNAMED,
  uploadedFiles,
  type Form,
} from './body-kinds.js';
import { readLargeBody } from './large-bodies.js';
import { parseMultipart } from './multipart.js';
import { PLATFORM_ISSUES } from '#platform/kernel/issues.js';

/** Far more than any form has. Without it a small body could hold a hundred thousand parts, each an object. */
const MAX_PARTS = 200;

/** Parses bodies that are no JSON. That of an upload is a `Form`, as of other forms. */
export function installBodyParsers(server: FastifyInstance): void {
  const { form, upload, picture, file } = MEDIA_TYPES;
  server.addContentTypeParser([...form], { parseAs: 'string' }, (_request, body: string, done) =>
    done(null, createForm(new URLSearchParams(body))),
  );
  server.addContentTypeParser([...upload], async (request: FastifyRequest, body: Readable) =>
    parseUpload(request, await readLargeBody(request, body)),
  );
  server.addContentTypeParser([...picture, MISNAMED_JPEG, ...file, UNNAMED], readLargeBody);
}

/** Parses a whole body, whose limit bounds the work. @throws InvalidFieldsError */
function parseUpload(request: FastifyRequest, body: Buffer): Form {
  const parts = parseMultipart(body, request.headers['content-type'] ?? '', MAX_PARTS);
  if (!parts) throw new InvalidFieldsError({ base: [PLATFORM_ISSUES.form_unreadable] });
  if (parts.length > MAX_PARTS) {
    throw new InvalidFieldsError({
      base: [PLATFORM_ISSUES.form_too_many_fields({ max: MAX_PARTS })],
    });
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
      base: [PLATFORM_ISSUES.form_too_large({ max: MAX_FIELDS_BYTES / 1024 })],
    });
  }
  uploadedFiles.set(request, uploaded);
  return createForm(fields);
}

/** Creates a form from its fields. Lines end with `\n`; NUL, which a database cannot hold, is removed. */
function createForm(fields: Iterable<[name: string, value: string]>): Form {
  return Object.fromEntries(
    [...fields].map(([name, value]) => [name, value.replaceAll('\r\n', '\n').replaceAll('\0', '')]),
  );
}
