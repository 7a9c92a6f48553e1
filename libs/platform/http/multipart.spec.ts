import { describe, expect, it } from '@jest/globals';
import { parseMultipart } from './multipart.js';

const MAX_PARTS = 200;

async function encode(fields: [string, string | Blob, string?][]) {
  const form = new FormData();
  for (const [name, value, file] of fields) {
    if (typeof value === 'string') form.append(name, value);
    else form.append(name, value, file);
  }
  const response = new Response(form);
  const type = response.headers.get('content-type') ?? '';
  return { body: Buffer.from(await response.arrayBuffer()), type };
}

const parse = (text: string, type = 'multipart/form-data; boundary=x') =>
  parseMultipart(Buffer.from(text), type, MAX_PARTS);

describe('parseMultipart', () => {
  it('reads what the platform encodes: texts, files, and names with quotes and line ends', async () => {
    const bytes = Buffer.from([0, 13, 10, 45, 45, 255]);
    const { body, type } = await encode([
      ['name', 'Café\r\n--no boundary'],
      ['', ''],
      ['a "b"\r\nc', 'd'],
      ['file', new Blob([bytes]), 'na"me\r\n.csv'],
    ]);
    const parts = parseMultipart(body, type, MAX_PARTS);
    expect(parts?.map(({ name, isFile, bytes: value }) => [name, isFile, [...value]])).toEqual([
      ['name', false, [...Buffer.from('Café\r\n--no boundary')]],
      ['', false, []],
      ['a "b"\r\nc', false, [100]],
      ['file', true, [...bytes]],
    ]);
    const quoted = type.replace(/boundary=(.*)/, 'Boundary="$1"; charset=utf-8');
    expect(parseMultipart(body, quoted, MAX_PARTS)).toEqual(parts);
  });

  it('copies no file', async () => {
    const { body, type } = await encode([['file', new Blob([Buffer.alloc(1_000)]), 'a']]);
    expect(parseMultipart(body, type, MAX_PARTS)?.[0]?.bytes.buffer).toBe(body.buffer);
  });

  it('takes a part with an empty name of a file for a file, as browsers send it when none was chosen', () => {
    const text = '--x\r\nContent-Disposition: form-data; name="a"; filename=""\r\n\r\n\r\n--x--';
    expect(parse(text)?.map(({ isFile, bytes }) => [isFile, bytes.length])).toEqual([[true, 0]]);
  });

  it('reads a form without fields', async () => {
    const { body, type } = await encode([]);
    expect(parseMultipart(body, type, MAX_PARTS)).toEqual([]);
  });

  it('stops after one part more than the maximum', async () => {
    const { body, type } = await encode(
      Array.from({ length: 5_000 }, (_, i) => [`field${i}`, 'value']),
    );
    expect(parseMultipart(body, type, MAX_PARTS)).toHaveLength(MAX_PARTS + 1);
  });

  it('reads parts with other headers, an unquoted name and an empty value', () => {
    const text =
      '--x\r\nContent-Type: text/plain\r\ncontent-disposition:form-data;name=a\r\n\r\n1\r\n--x\r\nContent-Disposition: form-data; name="b"\r\n\r\n\r\n--x--';
    expect(parse(text)?.map(({ name, bytes }) => [name, bytes.toString()])).toEqual([
      ['a', '1'],
      ['b', ''],
    ]);
  });

  it.each([
    ['nothing', ''],
    ['another boundary', '--y\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--y--'],
    ['no end', '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1'],
    ['no end of the last part', '--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x'],
    ['a header without an end', '--x\r\nContent-Disposition: form-data; name="a"\r\n--x--'],
    ['a part without a disposition', '--x\r\nContent-Type: text/plain\r\n\r\n1\r\n--x--'],
    ['a part without a name', '--x\r\nContent-Disposition: form-data\r\n\r\n1\r\n--x--'],
    [
      'text after the boundary',
      '--xyz\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--x--',
    ],
  ])('refuses a body with %s', (_what, text) => {
    expect(parse(text)).toBeUndefined();
  });

  it.each([
    'multipart/form-data',
    'multipart/form-data; boundary=',
    'multipart/form-data; boundary=""',
  ])('refuses the type %s', (type) => {
    expect(parse('--x--', type)).toBeUndefined();
  });
});
