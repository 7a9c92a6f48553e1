import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { renderApiDocuments, createOpenApi } from './api-documents.js';

for (const [path, text] of Object.entries(await renderApiDocuments(await createOpenApi()))) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
