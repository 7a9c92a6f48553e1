import { INPUT_HEADERS, COMMON_HEADERS } from './openapi-headers.js';
import type { OpenApiDocument } from './openapi-document.js';

/** Headers that the guides explain, and the reference omits. */
const DOCUMENTED_ONCE = new Set([...COMMON_HEADERS, ...INPUT_HEADERS, 'Idempotent-Replayed']);
const PARAMETERS_DOCUMENTED_ONCE = new Set([
  '#/components/parameters/RequestId',
  '#/components/parameters/Prefer',
]);
/** Errors of every operation. */
const ERRORS_DOCUMENTED_ONCE = new Set(['400', '409', '410', '413', '415', '429', '500', '503']);

type Node = Record<string, unknown>;

/**
 * Creates the OpenAPI document of the reference, without what all operations share and the guides explain. The complete
 * document is /openapi.json.
 * @param root the prefix of every path, where the service shares its host with others
 */
export function createReferenceDocument(document: OpenApiDocument, root: string): OpenApiDocument {
  const { info, paths } = document;
  const trimmedDocument = trim(document) as OpenApiDocument;
  return {
    ...trimmedDocument,
    info: { ...(info as Node), description: renderIntroduction(root) },
    // Requests go to the host that the page was loaded from.
    servers: [{ url: root || '/' }],
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, methods]) => [
        path,
        Object.fromEntries(
          Object.entries(methods).map(([method, operation]) => [method, trimOperation(operation)]),
        ),
      ]),
    ),
  };
}

function trimOperation(operation: Node): Node {
  const parameters = (operation['parameters'] ?? []) as Node[];
  const responses = Object.entries(operation['responses'] as Node);
  const trimmed = {
    ...operation,
    parameters: parameters.filter(({ $ref }) => !PARAMETERS_DOCUMENTED_ONCE.has(String($ref))),
    responses: Object.fromEntries(
      responses.filter(([status]) => !ERRORS_DOCUMENTED_ONCE.has(status)),
    ),
  };
  return trim(trimmed) as Node;
}

/** Removes the headers that every response has. */
function trim(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(trim);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, field]): [string, unknown][] => {
      if (key !== 'headers' || typeof field !== 'object' || field === null) {
        return [[key, trim(field)]];
      }
      const own = Object.entries(field as Node).filter(([name]) => !DOCUMENTED_ONCE.has(name));
      return own.length === 0 ? [] : [[key, Object.fromEntries(own)]];
    }),
  );
}

function renderIntroduction(root: string): string {
  return `Enter your token, and send the request from this page. **It acts on the store of the token as one of your program
does**: take a store of your own for trying, or \`dry_run\` where there is one.

The samples take the address of the service and the token from the environment:

\`\`\`sh
export INKPAD_URL=https://… INKPAD_TOKEN=ink_…
\`\`\`

All operations are in the [reference](${root}/docs/reference). The complete document, for programs, is
[openapi.json](${root}/openapi.json).`;
}
