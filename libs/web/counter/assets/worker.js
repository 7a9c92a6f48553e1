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
  const { page, offline, shell } = event.data || {};
  if (typeof page === 'string' && Array.isArray(shell)) {
    event.waitUntil(store(page, offline, shell));
  }
});

/**
 * Stores the page for when there is no connection, with the files that it needs and nothing of an earlier version. It is
 * the page of nobody: without a name, an id or a token.
 */
async function store(page, offline, shell) {
  const cache = await caches.open(CACHE);
  for (const { url } of await cache.keys()) {
    if (!PAGE.test(url) && !shell.includes(url)) await cache.delete(url);
  }
  const response = await fetch(offline, { credentials: 'same-origin' });
  if (response.ok && !response.redirected) await cache.put(page, response);
  for (const url of shell) if (!(await cache.match(url, OPTIONS))) await cache.add(url);
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

/** Shows the page from the service, which knows who is signed in, or without it the one that was stored last. */
async function showPage(request, url) {
  try {
    const response = await fetch(request);
    // Nobody is signed in any more.
    if (PAGE.test(url.pathname) && response.type === 'opaqueredirect') await forgetPerson();
    if (response.status < 500) return response;
    return (await findPage(url)) || response;
  } catch (error) {
    const cached = await findPage(url);
    if (cached) return cached;
    throw error;
  }
}

/** Finds the page of the store that a path is below, or for the start page of an installed counter that of the last store. */
async function findPage(url) {
  const cache = await caches.open(CACHE);
  const [store] = /.*[/]counter[/]\d+/.exec(url.pathname) || [];
  if (store) return cache.match(url.origin + store, OPTIONS);
  const pages = (await cache.keys()).filter(({ url: one }) => PAGE.test(one));
  const last = pages.at(-1);
  return last && cache.match(last, OPTIONS);
}

async function findFile(request) {
  return (await (await caches.open(CACHE)).match(request, OPTIONS)) || fetch(request);
}
