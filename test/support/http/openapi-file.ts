/** The OpenAPI document of a service, as tests read it. */

export type Json = Record<string, unknown>;

export type Operation = {
  operationId: string;
  summary: string;
  tags: string[];
  security?: object[];
  responses: Record<string, Json>;
  requestBody?: { content: Record<string, { schema: Json }> };
};

export type OpenApiFile = Json & {
  openapi: string;
  security?: object[];
  paths: Record<string, Json>;
};

const METHODS = new Set(['get', 'post', 'patch', 'put', 'delete']);

/** Lists the operations with their method and path. */
export function listOperations({
  paths,
}: OpenApiFile): { name: string; method: string; path: string; operation: Operation }[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => METHODS.has(method))
      .map(([method, operation]) => ({
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path,
        operation: operation as Operation,
      })),
  );
}

/** Follows references as far as they go. */
export function resolveReference(document: OpenApiFile, value: unknown): Json {
  const { $ref } = value as { $ref?: string };
  if ($ref === undefined) return value as Json;
  const target = $ref
    .replace(/^#\//, '')
    .split('/')
    .reduce<unknown>((at, part) => (at as Json | undefined)?.[part], document);
  return resolveReference(document, target ?? {});
}
