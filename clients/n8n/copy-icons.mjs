import { cpSync } from 'node:fs';

/** Copies what tsc leaves behind: the icons, and the descriptions that n8n's search of nodes reads. */
cpSync('icons', 'dist/icons', { recursive: true });
cpSync('nodes', 'dist/nodes', {
  recursive: true,
  filter: (path) => !path.endsWith('.ts'),
});
