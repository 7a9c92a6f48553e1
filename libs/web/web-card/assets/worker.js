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
  if (request.method === 'GET' && isCacheable(url)) event.respondWith(networkFirst(request, url));
});
async function networkFirst(request, url) {
  const key = url.origin + url.pathname;
  try {
    const response = await fetch(request);
    if (response.status < 500) {
      const cache = await caches.open(cacheName);
      if (response.ok && response.type === 'basic' && !response.redirected) {
        await cache.put(key, response.clone());
      } else if (isPage(url)) await deleteCache();
      return response;
    }
    return (await findCached(key)) || response;
  } catch (error) {
    const cached = await findCached(key);
    if (cached) return cached;
    throw error;
  }
}
async function findCached(key) {
  return (await caches.open(cacheName)).match(key);
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
  for (const { url } of await cache.keys()) if (!urls.has(url)) await cache.delete(url);
  for (const url of urls) if (!(await cache.match(url))) await cache.add(url);
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
  await fetch(scope + '/push', { method: 'POST', headers, body: JSON.stringify(renewed) });
}
