import type { FastifyInstance, FastifyRequest } from 'fastify';
import { declareMediaTypes } from './body-kinds.js';
import type { Form } from './form-bodies.js';

const TYPE = 'application/x-www-form-urlencoded';

/** Parses forms. */
export function installFormParser(server: FastifyInstance): void {
  declareMediaTypes('form', [TYPE]);
  server.addContentTypeParser(
    TYPE,
    { parseAs: 'string' },
    (_request: FastifyRequest, body: string, done) =>
      done(null, createForm(new URLSearchParams(body))),
  );
}

/** Creates a form from its fields. Lines end with `\n`; NUL, which a database cannot hold, is removed. */
export function createForm(fields: Iterable<[name: string, value: string]>): Form {
  return Object.fromEntries(
    [...fields].map(([name, value]) => [name, value.replaceAll('\r\n', '\n').replaceAll('\0', '')]),
  );
}
