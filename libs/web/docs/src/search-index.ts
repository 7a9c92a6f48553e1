import type { Guide } from './guides.js';
import type { OpenApiDocument } from './openapi-document.js';

export type SearchEntry = {
  /** The name of the page or the operation. */
  title: string;
  /** The text next to the title. */
  about: string;
  /** The path from the root of the service. */
  path: string;
  /** Further text to search. */
  text: string;
};

/** Indexes each section of each guide, and each operation. Events are sections of a guide. */
export function createSearchIndex(
  guides: readonly Guide[],
  document: OpenApiDocument,
): SearchEntry[] {
  return [...guides.flatMap(toGuideEntries), ...toOperationEntries(document)];
}

function toGuideEntries({ title, path, sections }: Guide): SearchEntry[] {
  return sections.map(({ id, heading, text }) => ({
    title: heading,
    about: id === null ? 'Guide' : title,
    path: id === null ? path : `${path}#${id}`,
    text,
  }));
}

type Operation = {
  operationId: string;
  summary: string;
  description: string;
  tags: string[];
  parameters?: { name?: string }[];
};

function toOperationEntries({ paths }: OpenApiDocument): SearchEntry[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods as unknown as Record<string, Operation>).map(([method, one]) => ({
      title: one.summary,
      about: `${method.toUpperCase()} ${path}`,
      path: `/docs/reference#${buildAnchor(one)}`,
      text: collectSearchText(one),
    })),
  );
}

/** Builds the anchor of an operation in Scalar, with the slugs of assets/reference.js. */
function buildAnchor({ tags: [tag = ''], operationId }: Operation): string {
  return `tag/${tag.toLowerCase().replaceAll(' ', '-')}/${operationId}`;
}

function collectSearchText({ operationId, description, tags, parameters = [] }: Operation): string {
  const names = parameters.flatMap(({ name }) => name ?? []);
  return [operationId, ...tags, description, ...names].join(' ');
}
