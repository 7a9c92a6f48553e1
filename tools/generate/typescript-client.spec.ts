import { expect, it } from '@jest/globals';
import { renderTypescriptSchema } from './typescript-client.js';

const document = (field: object) => ({
  openapi: '3.1.0',
  paths: {},
  components: { schemas: { Report: { required: ['at'], properties: { at: field, note: field } } } },
});

it('keeps a description from ending its comment', () => {
  const schema = renderTypescriptSchema(document({ type: 'string', description: 'Not */ yet' }));
  expect(schema).toContain(String.raw`
    /** Not *\/ yet */
    at: string;
    /** Not *\/ yet */
    note?: string;
`);
});

it('refuses a kind of schema that it has no type for', () => {
  expect(() => renderTypescriptSchema(document({ type: 'date' }))).toThrow(
    'TypeScript has no type for date',
  );
});
