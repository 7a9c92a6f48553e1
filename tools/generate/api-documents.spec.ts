import { existsSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { DeclaresTag, tags } from '#platform/http/endpoint.js';
import type { OpenApiDocument } from '#web/docs/openapi-document.js';
import { renderApiDocuments, createOpenApi } from './api-documents.js';

let documents: { api: OpenApiDocument; admin: OpenApiDocument };

beforeAll(async () => {
  documents = await createOpenApi();
});

describe('the OpenAPI documents', () => {
  it('match the code, and so do the generated documents (if not: npm run openapi)', async () => {
    const texts = Object.entries(await renderApiDocuments(documents));
    const stale = texts.filter(
      ([path, text]) => !existsSync(path) || readFileSync(path, 'utf8') !== text,
    );
    expect(texts.length).toBeGreaterThan(1);
    expect(stale.map(([path]) => path)).toEqual([]);
  });

  it('give the clients the version of the service', () => {
    const read = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as { version: string };
    const { version } = read('package.json');
    expect(read('clients/typescript/package.json').version).toBe(version);
    expect(readFileSync('clients/python/pyproject.toml', 'utf8')).toContain(
      `\nversion = "${version}"\n`,
    );
  });

  it('are not made while an operation names a tag that no controller declares', async () => {
    const declared = tags.get('Posters');
    if (!declared) throw new Error('no tag Posters');
    tags.delete('Posters');
    await expect(createOpenApi()).rejects.toThrow(
      'get /api/v1/accounts/{account_id}/posters: no controller declares the tag Posters',
    );
    expect(() => DeclaresTag(declared)(class {})).not.toThrow();
    expect(() => DeclaresTag(declared)(class {})).toThrow('two tags are called Posters');
  });
});

describe.each(['api', 'admin'] as const)('the OpenAPI document of the %s', (name) => {
  it('is valid OpenAPI 3.1', async () => {
    const { valid, errors } = await new Validator().validate(structuredClone(documents[name]));
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
  });

  it('has an example for every body that is valid by its schema', () => {
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    formats.default(ajv);
    ajv.addSchema(documents[name], 'document');
    const bodies = mediaTypes(documents[name], '#');
    expect(bodies.length).toBeGreaterThan(name === 'api' ? 40 : 20);
    const incomplete = bodies.flatMap(({ at, examples }) => {
      const validate = ajv.getSchema(`document${at}/schema`);
      if (!validate) return [`${at}: no schema`];
      if (examples.length === 0) return [`${at}: no example`];
      return examples.flatMap((example) =>
        validate(example) ? [] : [`${at}: ${ajv.errorsText(validate.errors)}`],
      );
    });
    expect(incomplete).toEqual([]);
  });

  it('refers only to itself', () => {
    const text = JSON.stringify(documents[name]);
    const targets = new Set([...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref = '']) => ref));
    const lost = [...targets].filter((ref) => {
      const parts = ref.split('/').slice(1);
      const target = parts.reduce<unknown>(
        (at, part) => (at as Record<string, unknown> | undefined)?.[part],
        documents[name],
      );
      return !ref.startsWith('#/') || target === undefined;
    });
    expect(lost).toEqual([]);
  });
});

type Body = { at: string; examples: unknown[] };

function mediaTypes(value: unknown, at: string): Body[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, field]) => {
    const here = `${at}/${encodeURIComponent(key.replaceAll('~', '~0').replaceAll('/', '~1'))}`;
    if (!/^application\/.*json$/.test(key)) return mediaTypes(field, here);
    const { example, examples } = field as {
      example?: unknown;
      examples?: Record<string, { value: unknown }>;
    };
    const several = Object.values(examples ?? {}).map((named) => named.value);
    return [{ at: here, examples: example === undefined ? several : [example] }];
  });
}
