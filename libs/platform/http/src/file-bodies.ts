import type { FastifyInstance, FastifyRequest } from 'fastify';
import { declareMediaTypes, getBodyKind, getMediaType, TakesBody } from './body-kinds.js';
import { readLargeBody } from './large-bodies.js';

const FILE_TYPES = ['text/csv', 'application/x-ndjson'] as const;
export type FileType = (typeof FILE_TYPES)[number];

/** The types under which programs send the same files: browsers on Windows take a CSV file for one of Excel. */
const ALIASES: Record<FileType, readonly string[]> = {
  'text/csv': [
    'application/csv',
    'application/vnd.ms-excel',
    'text/tab-separated-values',
    'text/plain',
  ],
  'application/x-ndjson': ['application/ndjson', 'application/jsonl', 'application/x-jsonlines'],
};

const TYPES = new Map(
  FILE_TYPES.flatMap((type) => [type, ...ALIASES[type]].map((name) => [name, type] as const)),
);

/** Declares that the body is a text file instead of JSON: a Buffer, or undefined when there is none. */
export function TakesFile(maxBytes: number): MethodDecorator {
  return TakesBody('file', maxBytes);
}

/** Parses text files. */
export function installFileParser(server: FastifyInstance): void {
  declareMediaTypes('file', TYPES.keys());
  server.addContentTypeParser([...TYPES.keys()], readLargeBody);
}

/** Returns the uploaded file; without a body it is empty. */
export function getFile(request: FastifyRequest): { type: FileType; bytes: Buffer } {
  if (getBodyKind(request) !== 'file')
    throw new Error('the route does not declare that it takes files');
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  return { type: getFileType(request) ?? detectFileType(bytes), bytes };
}

/** Detects NDJSON by its first character, in whatever encoding. */
export function detectFileType(bytes: Buffer): FileType {
  const start = bytes.subarray(0, 16).toString('latin1');
  return /^[^\w"]*\{/.test(start) ? 'application/x-ndjson' : 'text/csv';
}

function getFileType(request: FastifyRequest): FileType | undefined {
  return TYPES.get(getMediaType(request) ?? '');
}
