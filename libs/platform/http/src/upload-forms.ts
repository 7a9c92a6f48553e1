import type { FastifyInstance, FastifyRequest } from 'fastify';
import { InvalidFieldsError } from '#kernel/errors.js';
import { declareMediaTypes, TakesBody } from './body-kinds.js';
import type { Form } from './form-bodies.js';
import { createForm } from './form-parsing.js';

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
  server.addContentTypeParser(
    TYPE,
    { parseAs: 'buffer' },
    (request: FastifyRequest, body: Buffer, done) => {
      parseUpload(request, body).then((form) => done(null, form), done);
    },
  );
}

/** Parses a whole body, whose limit bounds the work. @throws InvalidFieldsError */
async function parseUpload(request: FastifyRequest, body: Buffer): Promise<Form> {
  const type = request.headers['content-type'] ?? '';
  if (countParts(body, type) > MAX_PARTS) {
    throw new InvalidFieldsError({ base: [`The form has more than ${MAX_PARTS} fields`] });
  }
  let data: FormData;
  try {
    data = await new Response(new Uint8Array(body), {
      headers: { 'content-type': type },
    }).formData();
  } catch (cause) {
    throw Object.assign(new InvalidFieldsError({ base: ['The form cannot be read'] }), { cause });
  }
  const uploaded = new Map<string, Buffer>();
  const fields: [string, string][] = [];
  let fieldBytes = 0;
  for (const [name, value] of data) {
    fieldBytes += name.length;
    if (typeof value === 'string') {
      fieldBytes += Buffer.byteLength(value);
      fields.push([name, value]);
    } else uploaded.set(name, Buffer.from(await value.arrayBuffer()));
  }
  if (fieldBytes > MAX_FIELDS_BYTES) {
    throw new InvalidFieldsError({
      base: [`The texts of the form have more than ${MAX_FIELDS_BYTES / 1024} KiB`],
    });
  }
  files.set(request, uploaded);
  return createForm(fields);
}

/**
 * Counts the parts of a body before it is parsed, by what separates them. Where the type has several boundaries, or one
 * in another parameter, the parser decides which of them counts: the largest number does here.
 */
export function countParts(body: Buffer, type: string): number {
  const boundaries = [...type.matchAll(/boundary=(?=(?:"((?:[^"\\]|\\.)*)|([^;\s]*)))/gi)].map(
    ([, quoted, plain = '']) => quoted?.replaceAll(/\\(.)/g, '$1') ?? plain,
  );
  return Math.max(0, ...boundaries.map((boundary) => countSeparators(body, `--${boundary}`) - 1));
}

/** Counts up to one more than a form may have. The last one ends the body. */
function countSeparators(body: Buffer, separator: string): number {
  let count = 0;
  for (let at = body.indexOf(separator); at !== -1 && count <= MAX_PARTS + 1; count++) {
    at = body.indexOf(separator, at + separator.length);
  }
  return count;
}
