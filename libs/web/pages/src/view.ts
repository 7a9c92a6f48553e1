import { readFileSync } from 'node:fs';
import { Eta } from 'eta/core';
import type { PageFrame } from './page-frame.js';

/** Renders the inside of a page. Escapes every value, except those written with `<%~`. */
export type View<D extends object> = (data: D, page: PageFrame) => string;

const PARTS = ['csrf', 'field', 'choice', 'check', 'faults', 'notice', 'empty', 'menu'] as const;

/**
 * Renders views. In every view `part(name, data)` renders one of parts/*.eta. Unlike the engine's own `include` it
 * passes on only `data`, so that no value of a page can slip into an element by chance.
 */
const eta = new Eta({
  escapeFunction: escapeHtml,
  functionHeader: 'const part = (name, data) => this.render(`@${name}`, data ?? {});',
});
for (const name of PARTS)
  eta.loadTemplate(`@${name}`, readTextFile(import.meta.url, `./parts/${name}.eta`));

/**
 * Loads a view from a file, which the build copies next to the code.
 * @param from import.meta.url of the caller
 * @param path from there, such as `./views/sign-in.eta`
 */
export function loadView<D extends object = Record<string, never>>(
  from: string,
  path: string,
): View<D> {
  const render = eta.compile(readTextFile(from, path));
  return (data, page) => render.call(eta, { ...data, page }, { filepath: path });
}

export function readTextFile(from: string, path: string): string {
  return readFileSync(new URL(path, from), 'utf8');
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes a value for HTML; undefined and null become an empty text. */
function escapeHtml(value: unknown): string {
  if (value === undefined || value === null) return '';
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
