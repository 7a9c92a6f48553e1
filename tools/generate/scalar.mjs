import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import zlib from 'node:zlib';

/**
 * Makes data/scalar.js.br, the page at /docs/reference/try, of the standalone bundle of @scalar/api-reference (MIT):
 *
 *   npm pack @scalar/api-reference@1.72.1 && tar xf scalar-api-reference-1.72.1.tgz
 *   node tools/generate/scalar.mjs package/dist/browser/standalone.js
 *
 * Then test/docs/browser.full-spec.ts says whether it still asks nobody outside, and NOTICE has the version.
 */
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const [bundle] = process.argv.slice(2);
if (bundle === undefined) throw new Error('say where standalone.js is');

const text = fs.readFileSync(bundle);
const compressed = zlib.brotliCompressSync(text, {
  params: {
    [zlib.constants.BROTLI_PARAM_MODE]: zlib.constants.BROTLI_MODE_TEXT,
    [zlib.constants.BROTLI_PARAM_QUALITY]: zlib.constants.BROTLI_MAX_QUALITY,
    [zlib.constants.BROTLI_PARAM_LGWIN]: zlib.constants.BROTLI_MAX_WINDOW_BITS,
    [zlib.constants.BROTLI_PARAM_SIZE_HINT]: text.length,
  },
});
fs.writeFileSync(path.join(root, 'data/scalar.js.br'), compressed);
console.log(`${text.length} bytes, compressed ${compressed.length}`);
