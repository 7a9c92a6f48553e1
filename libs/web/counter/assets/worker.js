/**
 * Runs as the service worker of the counter: shows its page without a connection. What was stamped meanwhile is kept by
 * the page itself.
 */
const CACHE = 'counter';
const OPTIONS = { ignoreVary: true };
/** The page of a store. */
const PAGE = /[/]counter[/]\d+$/;
/** The page with which an installed counter starts. */
const START = /[/]counter$/;
/** How long other pages, which are not stored, may take before the stored one says that they cannot be reached. */
const OTHER_PAGE_MS = 10000;
const STORE_MS = 30000;

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
  const files = await fetchMissing(cache, shell, OPTIONS);
  const signal = AbortSignal.timeout(STORE_MS);
  const response = await fetch(offline, { credentials: 'same-origin', signal });
  if (response.ok && !response.redirected) {
    await cache.put(page, new Response(await response.arrayBuffer(), response));
  }
  for (const [url, file] of files) await cache.put(url, file);
  for (const { url } of await cache.keys()) {
    if (!PAGE.test(url) && !shell.includes(url)) await cache.delete(url);
  }
}

addEventListener('fetch', (event) => {
  const { request } = event;
  if (request.method !== 'GET') return;
  const url = new URL(request.url);
  if (url.origin !== location.origin) return;
  if (request.mode === 'navigate') event.respondWith(showPage(event, url));
  else if (/[/](assets[/]|counter[/]decoder[.])/.test(url.pathname)) {
    event.respondWith(findFile(request));
  }
});

/** Shows the page from the service, which knows who is signed in, or without it the one that was stored last. */
function showPage(event, url) {
  const isStored = PAGE.test(url.pathname) || START.test(url.pathname);
  return respondInTime(event, {
    find: () => findPage(url),
    async keep({ type }) {
      // Nobody is signed in any more.
      if (PAGE.test(url.pathname) && type === 'opaqueredirect') await forgetPerson();
    },
    // The stored page has heard from the service, and waits for the other one.
    patienceMs: url.search === '?wait' ? Infinity : isStored ? undefined : OTHER_PAGE_MS,
  });
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
  const find = async () => (await caches.open(CACHE)).match(request, OPTIONS);
  return (await find().catch((error) => console.debug(error))) || fetch(request);
}
