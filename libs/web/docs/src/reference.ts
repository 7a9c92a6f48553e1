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
export function createReferenceDocument(document: OpenApiDocument, root: string): Node {
  const { info, paths } = document;
  const trimmedDocument = trim(document) as Node;
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

function trimOperation(operation: Node): unknown {
  const parameters = (operation['parameters'] ?? []) as Node[];
  const responses = Object.entries(operation['responses'] as Node);
  return trim({
    ...operation,
    parameters: parameters.filter(({ $ref }) => !PARAMETERS_DOCUMENTED_ONCE.has(String($ref))),
    responses: Object.fromEntries(
      responses.filter(([status]) => !ERRORS_DOCUMENTED_ONCE.has(status)),
    ),
  });
}

/** Removes the headers that every response has. */
function trim(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(trim);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, one]): [string, unknown][] => {
      if (key !== 'headers' || typeof one !== 'object' || one === null) {
        return [[key, trim(one)]];
      }
      const own = Object.entries(one as Node).filter(([name]) => !DOCUMENTED_ONCE.has(name));
      return own.length === 0 ? [] : [[key, Object.fromEntries(own)]];
    }),
  );
}

function renderIntroduction(root: string): string {
  return `Every operation, with samples in curl, TypeScript and Python. Enter your token once, below, and try
them here. New to Inkpad? [First stamp in five minutes](${root}/docs/first-stamp).

The samples take the address of the service and the token from the environment:

\`\`\`sh
export INKPAD_URL=https://… INKPAD_TOKEN=ink_…
\`\`\`

The guides explain what applies to every operation:

| | |
| --- | --- |
| [Errors](${root}/docs/errors) | 400, 410, 413, 415, 429, 500 and 503 look the same everywhere |
| [Retries](${root}/docs/retries) | \`Idempotency-Key\` on every write, 409, \`Idempotent-Replayed\` |
| [Lists and limits](${root}/docs/limits) | \`RateLimit-…\` on every response, \`limit\`, \`cursor\` and \`Link\` |
| [Versions](${root}/docs/versioning) | \`Deprecation\` and \`Sunset\`, once there is an end |
| [Typing errors](${root}/docs/errors#find-typing-errors) | \`Prefer: handling=strict\`, \`X-Unknown-Parameters\` |

Every response has an \`X-Request-Id\`: your own, if you send one of 1 to 128 letters, digits, dots, underscores and
hyphens. The complete document, for programs, is [openapi.json](${root}/openapi.json).`;
}
