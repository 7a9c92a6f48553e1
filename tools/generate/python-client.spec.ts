import { expect, it } from '@jest/globals';
import { renderPythonModels } from './python-client.js';

it('defines the records that Python evaluates at once after all that they name', () => {
  const text = { type: 'string', description: 'A day.' };
  const models = renderPythonModels({
    openapi: '3.1.0',
    paths: {},
    components: {
      schemas: {
        Report: {
          required: ['from', 'rows'],
          properties: {
            from: text,
            rows: { type: 'array', items: { $ref: '#/components/schemas/ReportRow' } },
          },
        },
        ReportRow: { required: ['day'], properties: { day: text } },
      },
    },
  });
  expect(models).toContain('"rows": list[ReportRow]');
  expect(models.indexOf('Report = TypedDict(')).toBeGreaterThan(
    models.indexOf('class ReportRow(TypedDict):'),
  );
  expect(models).toContain('class ReportRow(TypedDict):');
});
