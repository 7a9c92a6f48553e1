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
  /** The body is a text file. */
  file: boolean;
  open: boolean;
  hasResponse: boolean;
};

/** Runs as it is pasted, with the address and the token in two variables of the shell. */
export function renderCurlSample(
  { method, url, query, body, picture, file, open }: SampleRequest,
  token = 'INKPAD_TOKEN',
): string {
  const search = new URLSearchParams(
    Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
  ).toString();
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}"$INKPAD_URL${url}${search && `?${search}`}"`,
    ...(open ? [] : [`-H "Authorization: Bearer $${token}"`]),
    ...(body === undefined
      ? []
      : ["-H 'Content-Type: application/json'", `-d '${quoteForShell(JSON.stringify(body))}'`]),
    ...(picture ? ["-H 'Content-Type: image/png'", '--data-binary @strip.png'] : []),
    ...(file ? ["-H 'Content-Type: text/csv'", '--data-binary @customers.csv'] : []),
  ];
  return lines.join(' \\\n  ');
}

/** One white pixel. */
const PICTURE = `new Blob(
    [Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGP4DwABAQEAsTj2FAAAAABJRU5ErkJggg==', 'base64')],
    { type: 'image/png' },
  )`;

const FILE = `new Blob(['First name,E-mail\\nAnna,anna@example.com\\n'], { type: 'text/csv' })`;

/** Renders the sample with the client of clients/typescript. */
export function renderTypescriptSample({
  id,
  path,
  query,
  body,
  picture,
  file,
  hasResponse,
}: SampleRequest): string {
  const params = Object.entries({
    ...(Object.keys(path).length > 0 && { path }),
    ...(Object.keys(query).length > 0 && { query }),
    ...(body !== undefined && { body }),
  });
  const parameters = [
    ...params.map(([name, value]) => `  ${name}: ${renderTypescriptLiteral(value)},\n`),
    ...(picture ? [`  body: ${PICTURE},\n`] : []),
    ...(file ? [`  body: ${FILE},\n`] : []),
  ].join('');
  return `import { createClient } from '@inkpad/client';

const inkpad = createClient({
  baseUrl: process.env.INKPAD_URL ?? '',
  token: process.env.INKPAD_TOKEN ?? '',
});
${hasResponse ? 'const response = ' : ''}await inkpad.${id}(${parameters && `{\n${parameters}}`});`;
}

/** Renders the sample with the client of clients/python. */
export function renderPythonSample({
  id,
  path,
  query,
  body,
  picture,
  file,
  hasResponse,
}: SampleRequest): string {
  const ids = Object.entries({ ...path, ...query }).map(
    ([name, value]) => `${toPythonArgument(name)}=${renderPythonLiteral(value)}`,
  );
  const parameters = [
    ...ids,
    ...(body === undefined ? [] : [`body=${renderPythonLiteral(body)}`]),
    ...(picture ? ['body=open("strip.png", "rb").read()'] : []),
    ...(file ? ['body=open("customers.csv", "rb").read()'] : []),
  ].map((parameter) => `    ${parameter},\n`);
  return `import os

from inkpad import Inkpad

inkpad = Inkpad(base_url=os.environ["INKPAD_URL"], token=os.environ["INKPAD_TOKEN"])
${hasResponse ? 'response = ' : ''}inkpad.${toPythonMethod(id)}(${parameters.length === 0 ? '' : `\n${parameters.join('')}`})${hasResponse ? '\nprint(response)' : ''}`;
}

/** Names that Python keeps for itself; an argument has an underscore after it then, as PEP 8 has it. */
const KEYWORDS = new Set(
  'False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield'.split(
    ' ',
  ),
);

/** Converts a name such as `stampCustomerCard` to `stamp_customer_card`. */
export function toPythonMethod(operationId: string): string {
  return operationId.replaceAll(/[A-Z]/g, (capital) => `_${capital.toLowerCase()}`);
}

export function toPythonArgument(name: string): string {
  return KEYWORDS.has(name) ? `${name}_` : name;
}

function renderPythonLiteral(value: unknown): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) return `[${value.map(renderPythonLiteral).join(', ')}]`;
  // JSON's strings and numbers are Python's as well.
  if (typeof value !== 'object') return JSON.stringify(value);
  const fields = Object.entries(value).map(
    ([key, field]) => `${JSON.stringify(key)}: ${renderPythonLiteral(field)}`,
  );
  return `{${fields.join(', ')}}`;
}

function quoteForShell(json: string): string {
  return json.replaceAll("'", String.raw`'\''`);
}

/** Renders JSON as people write it in TypeScript. */
function renderTypescriptLiteral(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(renderTypescriptLiteral).join(', ')}]`;
  if (typeof value === 'string') return `'${value.replaceAll(/[\\']/g, String.raw`\$&`)}'`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([key, field]) => {
    const name = /^[A-Za-z_]\w*$/.test(key) ? key : renderTypescriptLiteral(key);
    return `${name}: ${renderTypescriptLiteral(field)}`;
  });
  return fields.length === 0 ? '{}' : `{ ${fields.join(', ')} }`;
}
