import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { copyViews, drawGuides } from './views.mjs';

/** After the compiler: what pages are drawn from, which it does not copy. */
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
copyViews(root);
await drawGuides(root);
