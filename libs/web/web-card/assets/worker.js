/**
 * Runs as the service worker of one card: shows its last state without a connection, and its notifications. Its scope
 * is the card's own link, which keeps the cards of several shops on one phone apart.
 */
const scope = new URL(registration.scope).pathname;
const cacheName = 'card ' + scope;

addEventListener('install', (event) => event.waitUntil(skipWaiting()));
addEventListener('activate', (event) => event.waitUntil(clients.claim()));

function isPage(url) {
  return url.pathname === scope;
}
function isCacheable(url) {
  if (url.origin !== location.origin) return false;
  if (isPage(url)) return true;
  const root = scope.slice(0, scope.indexOf('/passes/'));
  const own = [scope + '/icon', scope + '/manifest', root + '/assets/', root + '/img/'];
  return own.some((start) => url.pathname.startsWith(start));
}

addEventListener('fetch', (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method === 'GET' && isCacheable(url)) event.respondWith(respond(event, url));
});

let requestCount = 0;
/** By key, the last request whose response was stored: one that was overtaken is older. */
const stored = new Map();

/** Tells whether a response says nothing about the card: too many requests of an address, or a failure of the service. */
const saysNothing = ({ status }) => status === 429 || status >= 500;

function respond(event, url) {
  const { request } = event;
  const key = url.origin + url.pathname;
  const number = ++requestCount;
  const isLast = () => (stored.get(key) || 0) <= number;
  return respondInTime(event, {
    find: () => findCached(key),
    async keep(response, body) {
      if (saysNothing(response) || !isLast()) return;
      const isKept = response.ok && response.type === 'basic' && !response.redirected;
      // What a link with a parameter asks or says is for that visit alone.
      if (isKept && isPage(url) && url.search !== '') return;
      stored.set(key, number);
      if (isKept) {
        await (await caches.open(cacheName)).put(key, new Response(body, response));
      } else if (isPage(url)) await deleteCache();
    },
    // The script asks for what has changed, and shows what it has meanwhile.
    patienceMs: request.destination === '' ? Infinity : undefined,
    async onLate({ response, body }) {
      if (request.mode !== 'navigate' || saysNothing(response) || !isLast()) return;
      const page = await clients.get(event.resultingClientId);
      const isCard = response.ok && !response.redirected;
      if (page) page.postMessage({ page: isCard ? new TextDecoder().decode(body) : null });
    },
  });
}
async function findCached(key) {
  return caches.match(key, { cacheName });
}
/** Removes everything of a deleted card from the device. */
function deleteCache() {
  return caches.delete(cacheName);
}

addEventListener('message', (event) => {
  if (event.data && Array.isArray(event.data.urlsToCache))
    event.waitUntil(cacheOnly(event.data.urlsToCache));
});
async function cacheOnly(texts) {
  const cache = await caches.open(cacheName);
  const urls = new Set(
    texts
      .map((text) => new URL(text))
      .filter(isCacheable)
      .map((url) => url.origin + url.pathname),
  );
  for (const [url, file] of await fetchMissing(cache, urls)) await cache.put(url, file);
  for (const { url } of await cache.keys()) if (!urls.has(url)) await cache.delete(url);
}

addEventListener('push', (event) => {
  // Browsers that know declarative messages show them without this.
  const { title, navigate, ...options } = event.data.json().notification;
  event.waitUntil(registration.showNotification(title, { ...options, data: { url: navigate } }));
});
addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(openCard(event.notification.data));
});
async function openCard(data) {
  const url = new URL((data && data.url) || scope, location.origin);
  if (url.origin !== location.origin) return;
  const open = await clients.matchAll({ type: 'window', includeUncontrolled: true });
  const openPage = open.find((client) => new URL(client.url).pathname === url.pathname);
  await (openPage ? openPage.focus() : clients.openWindow(url.pathname));
}
addEventListener('pushsubscriptionchange', (event) => event.waitUntil(renew(event)));
async function renew({ oldSubscription, newSubscription }) {
  const options = oldSubscription && oldSubscription.options;
  const renewed =
    newSubscription || (options && (await registration.pushManager.subscribe(options)));
  if (!renewed) return;
  const headers = { 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(30000);
  await fetch(scope + '/push', { method: 'POST', headers, body: JSON.stringify(renewed), signal });
}
