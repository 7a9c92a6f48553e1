import { errorCodes, type FastifyInstance, type FastifyRequest } from 'fastify';
import { takesForm, type Form } from './form-bodies.js';
import { hasBody } from './request-bodies.js';

const TYPE = 'application/x-www-form-urlencoded';

/** Parses forms on routes that take them. A form on any other route is 415, as is anything but a form on these. */
export function installFormParser(server: FastifyInstance): void {
  server.addHook('preParsing', (request, _reply, _body, done) => {
    if (!hasBody(request)) {
      // A form without fields may come without a body.
      if (takesForm(request)) request.body = parseForm('');
      return done();
    }
    if (takesForm(request) === isForm(request)) return done();
    throw new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE(request.headers['content-type'] ?? 'none');
  });
  server.addContentTypeParser(
    TYPE,
    { parseAs: 'string' },
    (_request: FastifyRequest, body: string, done) => done(null, parseForm(body)),
  );
}

function parseForm(body: string): Form {
  return createForm(new URLSearchParams(body));
}

/** Creates a form from its fields. Lines end with `\n`; NUL, which a database cannot hold, is removed. */
export function createForm(fields: Iterable<[name: string, value: string]>): Form {
  return Object.fromEntries(
    [...fields].map(([name, value]) => [name, value.replaceAll('\r\n', '\n').replaceAll('\0', '')]),
  );
}

function isForm({ headers }: FastifyRequest): boolean {
  return headers['content-type']?.split(';', 1)[0]?.trim().toLowerCase() === TYPE;
}
