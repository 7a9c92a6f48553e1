import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import zlib from 'node:zlib';

/**
 * Makes data/zxing-reader.js.br and data/zxing-reader.wasm.br, with which the counter reads barcodes where the browser
 * cannot, of the package zxing-wasm (MIT, with zxing-cpp, Apache-2.0). It needs no install script:
 *
 *   npm pack zxing-wasm@3.1.4 && tar xf zxing-wasm-3.1.4.tgz
 *   node tools/generate/zxing.mjs package/dist
 *
 * Then test/counter/browser.full-spec.ts says whether it still reads cards, and NOTICE has the version.
 */
const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('say where the folder dist of the package is');

for (const [file, name] of [
  ['iife/reader/index.js', 'zxing-reader.js.br'],
  ['reader/zxing_reader.wasm', 'zxing-reader.wasm.br'],
]) {
  const content = fs.readFileSync(path.join(folder, file));
  const compressed = zlib.brotliCompressSync(content, {
    params: {
      [zlib.constants.BROTLI_PARAM_QUALITY]: zlib.constants.BROTLI_MAX_QUALITY,
      [zlib.constants.BROTLI_PARAM_LGWIN]: zlib.constants.BROTLI_MAX_WINDOW_BITS,
      [zlib.constants.BROTLI_PARAM_SIZE_HINT]: content.length,
    },
  });
  fs.writeFileSync(path.join(root, 'data', name), compressed);
  console.log(`${name}: ${content.length} bytes, compressed ${compressed.length}`);
}
