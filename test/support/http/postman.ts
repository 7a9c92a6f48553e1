/** A Postman collection in format v2.1, as far as the tests read it. */
export type Collection = {
  info: { name: string; schema: string };
  auth: unknown;
  variable: { key: string; value: string }[];
  item: { name: string; item: { name: string; request: CollectionRequest }[] }[];
};

export type CollectionRequest = {
  method: string;
  header: { key: string; value: string }[];
  url: { raw: string; path: string[]; variable: { key: string; value: string }[] };
  body?: { mode: 'raw'; raw: string } | { mode: 'file' };
};

export function findRequests({ item }: Collection): (CollectionRequest & { name: string })[] {
  return item.flatMap((folder) => folder.item.map(({ name, request }) => ({ name, ...request })));
}

/** Fills in variables as Postman does. */
export function fillIn(text: string, values: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\{\{(\w+)\}\}/g, (variable, key: string) => values.get(key) ?? variable);
}
