import * as common from '@nestjs/common';
import * as core from '@nestjs/core';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

/**
 * Loads the real @nestjs/throttler for jest on Node 20. The package is CommonJS and requires Nest, which is ESM, and
 * jest cannot do that there; so its files are run here, with the Nest of the test.
 */
const require = createRequire(import.meta.url);
const nest = { '@nestjs/common': common, '@nestjs/core': core };
const loaded = new Map();

function load(file) {
  const known = loaded.get(file);
  if (known) return known.exports;
  const module = { exports: {} };
  loaded.set(file, module);
  const requireFrom = (name) => {
    if (name.startsWith('.')) return load(`${path.resolve(path.dirname(file), name)}.js`);
    return nest[name] ?? require(name);
  };
  const run = new Function('module', 'exports', 'require', readFileSync(file, 'utf8'));
  run(module, module.exports, requireFrom);
  return module.exports;
}

export const { getStorageToken, SkipThrottle, Throttle, ThrottlerModule } = load(
  path.resolve('node_modules/@nestjs/throttler/dist/index.js'),
);
