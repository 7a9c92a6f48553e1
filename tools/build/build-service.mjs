import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildService } from './build.mjs';

await buildService(path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..'));
