/** A request as its example shows it. */
export type SampleRequest = {
  /** The client's method. */
  id: string;
  method: string;
  /** Ids filled in. */
  url: string;
  path: Record<string, unknown>;
  query: Record<string, unknown>;
  /** Undefined: none. */
  body: unknown;
  /** The body is a picture. */
  picture: boolean;
  open: boolean;
  answers: boolean;
};

/** Runs as it is pasted, with the address and the token in two variables of the shell. */
export function curlSample({ method, url, query, body, picture, open }: SampleRequest): string {
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}"$INKPAD_URL${url}${search && `?${search}`}"`,
    ...(open ? [] : ['-H "Authorization: Bearer $INKPAD_TOKEN"']),
    ...(body === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d '${quoted(JSON.stringify(body))}'`]),
    ...(picture ? ["-H 'Content-Type: image/png'", '--data-binary @strip.png'] : []),
  ];
  return lines.join(' \\\n  ');
}

/** One white pixel. */
const PICTURE = `new Blob(
    [Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==', 'base64')],
    { type: 'image/png' },
  )`;

/** The same with the client of clients/typescript. */
export function typescriptSample({
  id,
  path,
  query,
  body,
  picture,
  answers,
}: SampleRequest): string {
  const params = Object.entries({
    ...(Object.keys(path).length > 0 && { path }),
    ...(Object.keys(query).length > 0 && { query }),
    ...(body !== undefined && { body }),
  });
  const given = [
    ...params.map(([name, value]) => `  ${name}: ${literal(value)},\n`),
    ...(picture ? [`  body: ${PICTURE},\n`] : []),
  ].join('');
  return `import { createClient } from '@inkpad/client';

const inkpad = createClient({
  baseUrl: process.env.INKPAD_URL ?? '',
  token: process.env.INKPAD_TOKEN ?? '',
});
${answers ? 'const answer = ' : ''}await inkpad.${id}(${given && `{\n${given}}`});`;
}

/** The same with the package `requests`. */
export function pythonSample(sample: SampleRequest): string {
  const { method, url, query, body, picture, open, answers } = sample;
  const headers = [
    ...(open ? [] : ['"Authorization": f"Bearer {token}"']),
    ...(picture ? ['"Content-Type": "image/png"'] : []),
  ].join(', ');
  const given = [
    `url + "${url}"`,
    ...(headers ? [`headers={${headers}}`] : []),
    ...(Object.keys(query).length > 0 ? [`params=${pythonLiteral(query)}`] : []),
    ...(body === undefined ? [] : [`json=${pythonLiteral(body)}`]),
    ...(picture ? ['data=open("strip.png", "rb")'] : []),
    'timeout=10',
  ];
  return [
    'import os',
    '',
    'import requests',
    '',
    'url = os.environ["INKPAD_URL"]',
    ...(open ? [] : ['token = os.environ["INKPAD_TOKEN"]']),
    `answer = requests.${method.toLowerCase()}(`,
    ...given.map((one) => `    ${one},`),
    ')',
    'answer.raise_for_status()',
    ...(answers ? ['print(answer.json())'] : []),
  ].join('\n');
}

function pythonLiteral(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`;
  // JSON's strings and numbers are Python's as well.
  if (typeof value !== 'object') return JSON.stringify(value);
  const fields = Object.entries(value).map(
    ([key, one]) => `${JSON.stringify(key)}: ${pythonLiteral(one)}`,
  );
  return `{${fields.join(', ')}}`;
}

function quoted(json: string): string {
  return json.replaceAll("'", String.raw`'\''`);
}

/** JSON as people write it in TypeScript. */
function literal(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`;
  if (typeof value === 'string') return `'${value.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([key, one]) => {
    const name = /^[A-Za-z_]\w*$/.test(key) ? key : literal(key);
    return `${name}: ${literal(one)}`;
  });
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}
