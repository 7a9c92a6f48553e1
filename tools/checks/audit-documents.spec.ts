import { describe, expect, it } from '@jest/globals';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

const WRITES_AUDIT =
  /\.audit\(|auditUser\(|auditBySystem\(|auditChange\(\s*transaction|into audit_log/;
const TYPE = /'([a-z][a-z_]*\.[a-z][a-z_]*)'/g;
/** A type that is put together, which nothing can look up. */
const COMPOSED_TYPE = /[`'][a-z][a-z_]*\.[a-z_]*\$\{/;

type Source = { file: string; text: string };

/** The files that write audit entries. In them, texts such as `token.revoked` are types of entries and nothing else. */
const sources: Source[] = ['apps', 'libs', 'tools']
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  )
  .filter((file) => /(?<!\.spec|\.contract|\.d)\.ts$/.test(file) && !file.includes('migrations'))
  .map((file) => ({ file, text: readFileSync(file, 'utf8') }))
  .filter(({ text }) => WRITES_AUDIT.test(text));

function findTypes(pattern: RegExp, text: string): string[] {
  return [...text.matchAll(pattern)].map(([, type = '']) => type);
}

/** The first column of the table in docs/operating/protect.md. */
function findDocumentedTypes(): string[] {
  const text = readFileSync('docs/operating/protect.md', 'utf8');
  const [, table = ''] = /^\| Entries .*\n([^]*?)\n\n/m.exec(text) ?? [];
  return table
    .split('\n')
    .flatMap((row) => findTypes(/`([a-z_.]+)`/g, row.split('|')[1] ?? ''))
    .sort();
}

describe('the table of audit entries', () => {
  it('has each type that the code writes, and no other', () => {
    const written = new Set(sources.flatMap(({ text }) => findTypes(TYPE, text)));
    expect(findDocumentedTypes()).toEqual([...written].sort());
  });

  it('can be compared, because no type is put together', () => {
    expect(sources.length).toBeGreaterThan(15);
    const composing = sources.filter(({ text }) => COMPOSED_TYPE.test(text));
    expect(composing.map(({ file }) => file)).toEqual([]);
  });
});
