import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { createScriptTransformer } from '@jest/transform';

/**
 * Module hooks (see the documentation of node:module) that let Node.js load TypeScript as Jest's configuration says. They
 * work as synchronous and as asynchronous hooks: what `next` returns is passed on.
 */

const GLOBALS = new URL('./globals.mjs', import.meta.url).href;
let transformer;
let loaded;

export async function initialize(data) {
  transformer = await createScriptTransformer(data.config);
  loaded = data.loaded;
}

export function resolve(specifier, context, next) {
  if (specifier === '@jest/globals') return { url: GLOBALS, shortCircuit: true };
  // What is required instead of imported is a program to start: the built one.
  if (specifier.startsWith('#') && context.conditions.includes('import')) {
    return next(specifier, { ...context, conditions: [...context.conditions, 'inkpad-source'] });
  }
  if (/^\..*\.js$/.test(specifier) && context.parentURL?.endsWith('.ts')) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL);
    if (existsSync(source)) return next(source.href, context);
  }
  return next(specifier, context);
}

export function load(url, context, next) {
  if (!/^file:.*\.ts$/.test(url)) return next(url, context);
  const { code, sourceMapPath } = transformer.transform(fileURLToPath(url), {
    instrument: false,
    supportsDynamicImport: true,
    supportsExportNamespaceFrom: true,
    supportsStaticESM: true,
    supportsTopLevelAwait: true,
  });
  if (sourceMapPath) loaded.postMessage([url, sourceMapPath]);
  return { format: 'module', shortCircuit: true, source: code };
}
