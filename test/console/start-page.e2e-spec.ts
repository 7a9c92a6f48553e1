import { describe, expect, it } from '@jest/globals';
import { expectFailure, useService, type Failure } from '../support/http/contract.js';
import type { ApiResponse } from '../support/services/service.js';

const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
const PROGRAMS = [undefined, '*/*', 'application/json', 'application/json, text/html;q=0.9', ''];
const HTML = 'text/html; charset=utf-8';

const service = useService({ PUBLIC_URL: 'https://cards.example/stamps' });
const store = service.useStore();

function sendRequest<T>(
  path: string,
  accept: string | undefined,
  method = 'GET',
): Promise<ApiResponse<T>> {
  return store.send<T>(method, path, undefined, accept === undefined ? {} : { accept });
}

describe('the page at /', () => {
  it('PAGE-01 `/` shows a browser a page that leads to the documentation and to signing in', async () => {
    const page = await sendRequest('/', BROWSER);
    expect([page.status, page.headers.get('content-type')]).toEqual([200, HTML]);
    for (const path of ['/docs', '/app']) {
      expect(page.text).toContain(`href="/stamps${path}"`);
    }
    expect(page.headers.get('content-security-policy')).toContain("default-src 'none'");
  });

  it('PAGE-02 `/` shows a program JSON, with the URLs of the status, the documentation and the OpenAPI document', async () => {
    for (const accept of PROGRAMS) {
      const response = await sendRequest<Record<string, string>>('/', accept);
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      expect(response.body).toEqual({
        name: 'Inkpad',
        status_url: 'https://cards.example/stamps/api/v1/status',
        documentation_url: 'https://cards.example/stamps/docs',
        openapi_url: 'https://cards.example/stamps/openapi.json',
      });
    }
  });
});

describe('unknown pages', () => {
  it('PAGE-03 A path outside `/api/v1` that does not exist is a 404 with a page where `Accept` prefers `text/html`', async () => {
    for (const path of ['/nowhere', '/docs/nothing', '/apiary', '/docs/%E0%A4%A', '/index.html']) {
      const { status, headers, text } = await sendRequest(path, BROWSER);
      expect([path, status, headers.get('content-type')]).toEqual([path, 404, HTML]);
      expect(text).toContain('This page does not exist');
      const home = path.startsWith('/docs/') ? '/stamps/docs' : '/stamps/';
      expect(text).toContain(`href="${home}"`);
      expect(text).toContain(headers.get('x-request-id') ?? 'none');
      expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    }
    const posted = await sendRequest('/docs', BROWSER, 'POST');
    expect([posted.status, posted.headers.get('content-type')]).toEqual([405, HTML]);
  });

  it('PAGE-04 A path outside `/api/v1` that does not exist is a 404 with the error object for any other `Accept`', async () => {
    for (const accept of PROGRAMS) {
      const response = await sendRequest<Failure>('/nowhere', accept);
      expectFailure(response, 404, 'not_found');
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
    }
  });

  it('PAGE-05 Under `/api/v1` every failure is JSON, whatever `Accept` says', async () => {
    const paths = [
      '/api',
      '/api/v1',
      '/api/v1/',
      '/api/v1/nothing',
      '/%61pi/v1/nothing',
      '/api/v2/x',
    ];
    for (const path of [...paths, `${store.store}/cards/999999999`, '/health/nothing']) {
      const response = await sendRequest<Failure>(path, BROWSER);
      expect([path, response.status]).toEqual([path, 404]);
      expect(response.headers.get('content-type')).toMatch(/^application\/json/);
      expect(response.body.code).toBe('not_found');
    }
  });

  it('PAGE-06 What depends on `Accept` says so in `Vary`', async () => {
    for (const path of ['/', '/nowhere']) {
      for (const accept of [BROWSER, 'application/json']) {
        expect((await sendRequest(path, accept)).headers.get('vary')).toMatch(/(^|, )accept(,|$)/i);
      }
    }
  });
});
