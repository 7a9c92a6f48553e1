import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { ICONS } from './icons.js';

const folder = fileURLToPath(new URL('..', import.meta.url));
const views = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.eta'))
  .map((file) => ({ file, text: readFileSync(`${folder}/${file}`, 'utf8') }));

describe('the views of the console', () => {
  it('show icons that exist', () => {
    const names = views.flatMap(({ text }) =>
      [...text.matchAll(/part\('icon', \{ name: '([^']+)'/g)].map(([, name]) => name),
    );
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect(ICONS.text).toContain(`<symbol id="${name}"`);
  });

  it('show errors and what was done below their title', () => {
    const early = views.filter(({ text }) => {
      const title = text.search(/<h1|part\('heading'/);
      const notice = text.search(/part\('(?:errors'|banner', \{[^}]*text: it[.]flash)/);
      return notice !== -1 && notice < title;
    });
    expect(early.map(({ file }) => file)).toEqual([]);
  });
});
