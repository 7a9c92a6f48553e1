import type { OpenApiDocument } from '#web/docs/openapi-document.js';
import { renderPythonErrors, renderTypescriptErrors } from './error-classes.js';
import { closeSchema } from './openapi/open-shapes.js';
import { renderPythonModels, renderPythonOperations } from './python-client.js';
import { renderTypescriptRoutes, renderTypescriptSchema } from './typescript-client.js';

/** Renders the sources of the clients that the build generates, by their paths. */
export function renderClientSources(
  document: OpenApiDocument,
  version: string,
): Record<string, string> {
  // Our clients are released with the service, so their types may be exact.
  const exact = closeSchema(document) as OpenApiDocument;
  return {
    'clients/typescript/src/schema.ts': renderTypescriptSchema(exact),
    'clients/typescript/src/operations.ts': renderTypescriptRoutes(exact, version),
    'clients/typescript/src/error-classes.ts': renderTypescriptErrors(),
    'clients/python/src/inkpad/models.py': renderPythonModels(exact),
    'clients/python/src/inkpad/operations.py': renderPythonOperations(exact, { version }),
    'clients/python/src/inkpad/async_operations.py': renderPythonOperations(exact, {
      version,
      isAsync: true,
    }),
    'clients/python/src/inkpad/error_classes.py': renderPythonErrors(),
  };
}
