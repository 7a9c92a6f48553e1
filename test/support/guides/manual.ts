import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = 'docs/operating';

/** Reads all pages for operators as one text. */
export function readManual(): string {
  return readdirSync(FOLDER)
    .map((page) => readFileSync(join(FOLDER, page), 'utf8'))
    .join('\n');
}
