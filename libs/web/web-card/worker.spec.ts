import { expect, it } from '@jest/globals';
import { createContext, runInContext } from 'node:vm';
import { WORKER_SCRIPT } from './card-page.js';

const ORIGIN = 'https://inkpad.example';
const PAGE = `${ORIGIN}/passes/4f8a`;

/** Runs the service worker of a card, which has stored its page, and opens the page once. */
async function openStoredCard(status: number): Promise<{ pageText: number; isStored: boolean }> {
  const listeners = new Map<string, (event: object) => void>();
  const cache = new Map([[PAGE, new Response('stored')]]);
  const context = createContext({
    console,
    URL,
    Response,
    TextDecoder,
    setTimeout: (run: () => void, ms: number) => setTimeout(run, ms).unref(),
    registration: { scope: PAGE },
    location: { origin: ORIGIN },
    addEventListener: (name: string, listener: (event: object) => void) =>
      listeners.set(name, listener),
    caches: {
      match: async (key: string) => cache.get(key)?.clone(),
      open: async () => ({ put: async (key: string, page: Response) => cache.set(key, page) }),
      delete: async () => cache.clear(),
    },
    fetch: async () => new Response('now', { status }),
  });
  runInContext(WORKER_SCRIPT, context);
  const waits: Promise<unknown>[] = [];
  const responses: Promise<Response>[] = [];
  listeners.get('fetch')?.({
    request: { method: 'GET', mode: 'navigate', destination: 'document', url: PAGE },
    waitUntil: (wait: Promise<unknown>) => waits.push(wait),
    respondWith: (response: Promise<Response>) => responses.push(response),
  });
  const [response] = await Promise.all(responses);
  const pageText = response?.status ?? 0;
  await Promise.all(waits);
  return { pageText, isStored: cache.has(PAGE) };
}

it.each([
  [404, { pageText: 404, isStored: false }],
  [410, { pageText: 410, isStored: false }],
  [429, { pageText: 429, isStored: true }],
  [503, { pageText: 200, isStored: true }],
])('keeps the stored card after %i only if that says nothing about it', async (status, result) => {
  expect(await openStoredCard(status)).toEqual(result);
});
