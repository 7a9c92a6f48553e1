import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type Service } from './support/service.js';

let service: Service;

beforeAll(async () => {
  service = await startService({ PAGE_RATE_LIMIT_PER_MINUTE: '100000' });
});
afterAll(async () => {
  await service?.stop();
});

async function get(path: string, headers: Record<string, string> = {}) {
  const answer = await fetch(service.baseUrl + path, {
    redirect: 'manual',
    headers: { accept: 'text/html', ...headers },
  });
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

describe('pages', () => {
  it('all have one style, which browsers may keep for ever', async () => {
    const page = await get('/app/elements');
    expect(page.status).toBe(200);
    const [, path = ''] = /href="([^"]+\.css)"/.exec(page.text) ?? [];
    const style = await get(path);
    expect([
      style.status,
      style.headers.get('cache-control'),
      style.headers.get('content-type'),
    ]).toEqual([200, 'public, max-age=31536000, immutable', 'text/css; charset=utf-8']);
    // A page of another version of the service asks for its own style.
    const other = await get(path.replace(/-[\w-]{12}\./, '-AAAAAAAAAAAA.'));
    expect([other.status, other.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect((await get('/assets/nothing-AAAAAAAAAAAA.css')).status).toBe(404);
  });

  it('may not be framed, run scripts or load anything from elsewhere', async () => {
    const { headers, text } = await get('/app/elements');
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    expect(headers.get('referrer-policy')).toBe('same-origin');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(text).not.toMatch(/style="|<script|https?:\/\/(?!www\.w3\.org)/);
  });

  it('say kindly what is wrong, to browsers alone', async () => {
    const missing = await get('/app/nothing/of/the/kind');
    expect([missing.status, missing.headers.get('content-type')]).toEqual([
      404,
      'text/html; charset=utf-8',
    ]);
    expect(missing.text).toContain('This page does not exist');
    const german = await get('/join/nothing/here', { 'accept-language': 'de-AT,de;q=0.9' });
    expect([german.status, german.headers.get('vary')]).toEqual([
      404,
      expect.stringContaining('Accept-Language'),
    ]);
    expect(german.text).toContain('Diese Seite gibt es nicht');
    const script = await get('/join/nothing/here', { accept: '*/*' });
    expect(JSON.parse(script.text)).toMatchObject({ code: 'not_found' });
    const api = await get('/api/v1/nothing');
    expect(JSON.parse(api.text)).toMatchObject({ code: 'unauthorized' });
  });
});
