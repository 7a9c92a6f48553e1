import { describe, expect, it } from '@jest/globals';
import { countParts } from './upload-forms.js';

async function createBody(count: number): Promise<{ body: Buffer; type: string }> {
  const form = new FormData();
  for (let i = 0; i < count; i++) form.append(`field${i}`, 'value -- of a field');
  const response = new Response(form);
  return {
    body: Buffer.from(await response.arrayBuffer()),
    type: response.headers.get('content-type') ?? '',
  };
}

describe('countParts', () => {
  it.each([0, 1, 7])('counts %d parts', async (count) => {
    const { body, type } = await createBody(count);
    expect(countParts(body, type)).toBe(count);
    expect(countParts(body, type.replace(/boundary=(.*)/, 'boundary="$1"; charset=utf-8'))).toBe(
      count,
    );
  });

  it('stops counting once there are too many', async () => {
    const { body, type } = await createBody(5_000);
    expect(countParts(body, type)).toBeLessThan(300);
    // 200 are allowed.
    expect(countParts(body, type)).toBeGreaterThan(200);
  });

  it.each([
    (boundary: string) => `xboundary=other; boundary=${boundary}`,
    (boundary: string) => `x="; boundary=other"; boundary=${boundary}`,
    (boundary: string) => `x=boundary="; boundary=${boundary}; y="`,
    (boundary: string) => `boundary="\\${boundary}"`,
    (boundary: string) => `boundary="${boundary}`,
  ])('counts by the boundary that the parser takes (%#)', async (toParameters) => {
    const { body, type } = await createBody(7);
    const [, boundary = ''] = type.split('boundary=');
    const declared = `multipart/form-data; ${toParameters(boundary)}`;
    const headers = { 'content-type': declared };
    const parsed = await new Response(new Uint8Array(body), { headers }).formData();
    expect([...parsed]).toHaveLength(7);
    expect(countParts(body, declared)).toBe(7);
  });

  it('takes a body without a separator for one without parts', () => {
    expect(countParts(Buffer.from('nothing'), 'multipart/form-data; boundary=x')).toBe(0);
  });
});
