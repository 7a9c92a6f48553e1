import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { copyViews } from './views.mjs';

/** After the compiler: what pages are drawn from, which it does not copy. */
copyViews(path.dirname(path.dirname(fileURLToPath(import.meta.url))));
