import { readFileSync } from 'node:fs';
import { getPackageFileUrl } from '#platform/kernel/package-file.js';

export type OpenApiDocument = Record<string, unknown> & {
  paths: Record<string, Record<string, Record<string, unknown>>>;
};

/** Reads a document that `npm run openapi` generates from the code, for the service at this address. */
export function readOpenApiDocument(
  publicUrl: string,
  file: 'openapi.json' | 'openapi-admin.json' = 'openapi.json',
): OpenApiDocument {
  const document = JSON.parse(readFileSync(getPackageFileUrl(file), 'utf8')) as OpenApiDocument;
  return { ...document, servers: [{ url: publicUrl }] };
}
