import { readFileSync } from 'node:fs';
import { Eta } from 'eta/core';
import type { PageFrame } from './page-frame.js';

/** Draws the inside of a page. What it gets is written escaped, except by `<%~`. */
export type View<D extends object> = (data: D, page: PageFrame) => string;

const PARTS = ['csrf', 'field', 'choice', 'check', 'faults', 'notice', 'empty', 'menu'] as const;

/**
 * In every view `part(name, data)` draws one of parts/*.eta. Unlike the engine's own `include` it passes on nothing
 * but what it is given, so that no value of a page can slip into an element by chance.
 */
const eta = new Eta({
  escapeFunction: escapeHtml,
  functionHeader: 'const part = (name, data) => this.render(`@${name}`, data ?? {});',
});
for (const name of PARTS)
  eta.loadTemplate(`@${name}`, readTextFile(import.meta.url, `./parts/${name}.eta`));

/**
 * A view in a file, which the build copies beside the code.
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

/** What is not there is written as nothing. */
function escapeHtml(value: unknown): string {
  if (value === undefined || value === null) return '';
  return String(value).replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
