import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { getMarkerPath } from './build.mjs';
import { packClients } from './pack-clients.mjs';
import { copyViews, renderGuides } from './views.mjs';

/** After the compiler: what pages are drawn from, which it does not copy, and the packages that they offer. */
const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
copyViews(root);
await renderGuides(root);
await packClients(root);
// It says what an earlier build was made of, so the next start would build again.
fs.rmSync(getMarkerPath(root), { force: true });
