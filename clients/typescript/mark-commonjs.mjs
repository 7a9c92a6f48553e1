// Tells Node.js and TypeScript what is in dist/cjs; the package itself says that it is made of ES modules.
import { writeFileSync } from 'node:fs';

writeFileSync('dist/cjs/package.json', '{ "type": "commonjs" }\n');
