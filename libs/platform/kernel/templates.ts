import { readFileSync } from 'node:fs';
import { Eta } from 'eta/core';

/**
 * Renders templates, and escapes every value for HTML, except those written with `<%~`. In every template
 * `part(name, data)` renders one that was loaded with `loadPart`. Unlike the engine's own `include` it passes on only
 * `data` and `it.page`, so that no value of a view can slip into an element by chance.
 */
const eta = new Eta({
  escapeFunction: escapeHtml,
  functionHeader:
    'const part = (name, data) => this.render(`@${name}`, { page: it.page, ...data });',
});

/**
 * Loads a template from a file, which the build copies next to the code.
 * @param from import.meta.url of the caller
 * @param path from there, such as `./views/sign-in.eta`
 */
export function loadTemplate<D extends object>(from: string, path: string): (data: D) => string {
  const render = eta.compile(readTemplate(from, path));
  return (data) => render.call(eta, data, { filepath: path });
}

/** Loads a template that others render with `part`. */
export function loadPart(name: string, from: string, path: string): void {
  eta.loadTemplate(`@${name}`, readTemplate(from, path));
}

/** Reads a template without its indentation, which is 2 of 30 KB of a page. */
function readTemplate(from: string, path: string): string {
  return readTextFile(from, path).replaceAll(/^ +/gm, '');
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
export function escapeHtml(value: unknown): string {
  if (value === undefined || value === null) return '';
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
