/**
 * Runs as the service worker of the counter: shows its page without a connection. What was stamped meanwhile is kept by
 * the page itself.
 */
const CACHE = 'counter';
const OPTIONS = { ignoreVary: true };
/** The page of a store. */
const PAGE = /[/]counter[/]\d+$/;

addEventListener('install', (event) => event.waitUntil(skipWaiting()));
addEventListener('activate', (event) => event.waitUntil(clients.claim()));

addEventListener('message', (event) => {
  const { page, shell } = event.data || {};
  if (typeof page === 'string' && Array.isArray(shell)) event.waitUntil(keep(page, shell));
});

/** Keeps the page with the files that it needs, and nothing of an earlier version. */
async function keep(page, shell) {
  const cache = await caches.open(CACHE);
  for (const { url } of await cache.keys()) {
    if (!PAGE.test(url) && !shell.includes(url)) await cache.delete(url);
  }
  if (!(await cache.match(page, OPTIONS))) await keepPage(cache, page);
  for (const url of shell) if (!(await cache.match(url, OPTIONS))) await cache.add(url);
}

async function keepPage(cache, page) {
  const response = await fetch(page, { credentials: 'same-origin' });
  if (response.ok && !response.redirected) await cache.put(page, response);
}

addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET') return;
  const url = new URL(request.url);
  if (url.origin !== location.origin) return;
  if (request.mode === 'navigate') event.respondWith(showPage(request, url));
  else if (/[/](assets[/]|counter[/]decoder[.])/.test(url.pathname)) {
    event.respondWith(findFile(request));
  }
});

/** Shows the page from the service, which knows who is signed in, or without it the one that was kept last. */
async function showPage(request, url) {
  const isCounter = PAGE.test(url.pathname);
  try {
    const response = await fetch(request);
    const cache = await caches.open(CACHE);
    const key = url.origin + url.pathname;
    if (isCounter && response.ok && response.type === 'basic') {
      await cache.put(key, response.clone());
    }
    // Signed out: the page shows a name, and the next one is somebody else's.
    if (isCounter && response.type === 'opaqueredirect') {
      await cache.delete(key);
      await forgetRefused();
    }
    if (response.status < 500) return response;
    return (await findPage(url)) || response;
  } catch (error) {
    const cached = await findPage(url);
    if (cached) return cached;
    throw error;
  }
}

/** Deletes the refusals that nobody has read, which name customers. What waits to be sent names none. */
function forgetRefused() {
  return new Promise((resolve) => {
    const request = indexedDB.open('inkpad-counter');
    // Nothing was ever kept.
    request.addEventListener('upgradeneeded', () => request.transaction.abort());
    request.addEventListener('error', resolve);
    request.addEventListener('success', () => {
      const transaction = request.result.transaction('refused', 'readwrite');
      transaction.objectStore('refused').clear();
      for (const end of ['complete', 'abort']) transaction.addEventListener(end, resolve);
    });
  });
}

/** Finds the page of the store, or for the start page of an installed counter that of the last store. */
async function findPage(url) {
  const cache = await caches.open(CACHE);
  const exact = await cache.match(url.origin + url.pathname, OPTIONS);
  if (exact) return exact;
  const pages = (await cache.keys()).filter(({ url: one }) => PAGE.test(one));
  const last = pages.at(-1);
  return last && cache.match(last, OPTIONS);
}

async function findFile(request) {
  return (await (await caches.open(CACHE)).match(request, OPTIONS)) || fetch(request);
}
