import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { apiDocuments, describedApi } from './api-documents.js';

for (const [path, text] of Object.entries(await apiDocuments(await describedApi()))) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
