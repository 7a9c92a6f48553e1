/**
 * Keeps the page up to date and offers notifications and installation on the home screen. It takes every change from a
 * page that the server has rendered again, so it does not depend on what a card shows.
 */
const byId = (id) => document.getElementById(id);
const show = (id, is) => {
  const element = byId(id);
  if (element) element.hidden = !is;
};
let main = byId('card');
const at = main.dataset.at;
let source, timer, installation, registration, subscription;
let isConnected = true;
let requestCount = 0,
  shownRequest = 0;

function listen() {
  stopListening();
  if (document.hidden) return;
  // A network may accept the connection and then say nothing.
  schedule(5000, () => {
    setConnected(false);
    schedule(10000, catchUp);
  });
  source = new EventSource(at + '/events?since=' + main.dataset.tag);
  source.addEventListener('open', markAlive);
  source.addEventListener('alive', markAlive);
  source.addEventListener('changed', () => {
    markAlive();
    refresh();
  });
  source.addEventListener('error', () => {
    setConnected(false);
    // The browser connects again by itself unless the server has refused.
    if (source.readyState === EventSource.CLOSED) schedule(15000 + Math.random() * 30000, catchUp);
  });
}
function markAlive() {
  setConnected(true);
  schedule(75000);
}
function setConnected(is) {
  isConnected = is;
  show('offline', !is);
}
function schedule(delayMs, action = listen) {
  clearTimeout(timer);
  timer = setTimeout(action, delayMs);
}
async function catchUp() {
  await refresh();
  listen();
}
function stopListening() {
  clearTimeout(timer);
  if (source) source.close();
}

async function refresh() {
  const request = ++requestCount;
  let response, text;
  try {
    response = await fetch(at, { cache: 'no-store', signal: AbortSignal.timeout(30000) });
    text = await response.text();
  } catch {
    return schedule(15000, catchUp);
  }
  if (response.status >= 429) return schedule(15000, catchUp);
  if (!response.ok || response.redirected) return location.reload();
  await showState(request, text);
}
/** Shows the card of a page that the server has rendered. */
async function showState(request, text) {
  const style = '<style>' + document.querySelector('style').textContent + '</style>';
  // Another style has another hash than the policy of this page allows, even in a page that is only parsed.
  if (!text.includes(style)) return location.reload();
  const page = new DOMParser().parseFromString(text.replace(style, ''), 'text/html');
  const fresh = page.getElementById('card');
  await loadStrip(fresh.querySelector('.strip'));
  // A later request has got its response already. Tags cannot tell: after a restored backup they begin lower.
  if (request < shownRequest) return;
  shownRequest = request;
  // What the link of this visit asks for is on no other page.
  fresh.prepend(...main.querySelectorAll('#news'));
  const focused = document.activeElement && document.activeElement.id;
  const isNew = fresh.dataset.summary !== main.dataset.summary;
  main.replaceWith(document.adoptNode(fresh));
  main = fresh;
  // The service worker may have taken the page from its cache.
  setConnected(isConnected);
  document.title = page.title;
  if (isNew) {
    main.classList.add('changed');
    byId('announcement').textContent = main.dataset.summary;
  }
  updateButtons();
  cachePage();
  if (focused && byId(focused)) byId(focused).focus();
}

/** Loads the next picture while the old one is shown: it must not be blank at the very moment of a stamp. */
async function loadStrip(strip) {
  const image = new Image();
  image.srcset = strip.getAttribute('srcset');
  image.src = strip.getAttribute('src');
  const tooLate = new Promise((resolve) => setTimeout(resolve, 3000));
  await Promise.race([image.decode().catch(() => {}), tooLate]);
}

/** Shows the wallet's button at the bottom while the button in the page is out of view, until either was used or refused. */
let observer;
const usedKey = 'wallet ' + at;
function keepWallet() {
  if (observer) observer.disconnect();
  const bar = byId('stay');
  const inPage = main.querySelector('.wallet');
  if (!bar || !inPage || !('IntersectionObserver' in window) || readUse())
    return show('stay', false);
  if (bar.childElementCount === 1) bar.prepend(inPage.cloneNode(true));
  // A button of which only the edge is in view is not seen.
  observer = new IntersectionObserver(
    (entries) => show('stay', entries[entries.length - 1].intersectionRatio < 0.9),
    { threshold: 0.9 },
  );
  observer.observe(inPage);
}
// Browsers that block storage show the button again next time.
function readUse() {
  try {
    return localStorage.getItem(usedKey);
  } catch {
    return null;
  }
}
function recordUse() {
  try {
    localStorage.setItem(usedKey, '1');
  } catch {}
  keepWallet();
}

/** Shows the code as large as the screen, which stays on meanwhile. */
let screenLock;
function enlargeCode() {
  const button = byId('enlarge');
  const dialog = document.createElement('dialog');
  dialog.id = 'large';
  dialog.setAttribute('aria-label', button.title);
  const close = document.createElement('button');
  close.type = 'button';
  close.textContent = button.dataset.close;
  close.autofocus = true;
  dialog.append(
    button.querySelector('svg').cloneNode(true),
    document.querySelector('figcaption .code').cloneNode(true),
    close,
  );
  dialog.addEventListener('click', () => dialog.close());
  dialog.addEventListener('close', () => {
    dialog.remove();
    if (screenLock) screenLock.release();
    screenLock = null;
  });
  document.body.append(dialog);
  dialog.showModal();
  keepScreenOn();
}
async function keepScreenOn() {
  try {
    const lock = await navigator.wakeLock.request('screen');
    // The code may have been closed meanwhile, and another lock may be there already.
    if (byId('large') && !(screenLock && !screenLock.released)) screenLock = lock;
    else lock.release();
  } catch {
    // An old browser, or a battery that is almost empty.
  }
}

/** Puts the code into the button that enlarges it, which is of no use without this script. */
function makeCodeEnlargeable() {
  const button = byId('enlarge');
  if (!button || !button.hidden) return;
  button.append(button.nextElementSibling);
  button.hidden = false;
}

function updateButtons() {
  keepWallet();
  makeCodeEnlargeable();
  show('install', Boolean(installation));
  show('by-hand', navigator.standalone === false);
  const button = byId('notify');
  if (!button || !registration || !registration.pushManager || !('Notification' in window)) return;
  button.textContent = subscription ? button.dataset.off : button.dataset.on;
  button.hidden = Notification.permission === 'denied';
  show('blocked', Notification.permission === 'denied');
}

/** Asks the service worker to cache the page and its files, so that it can be shown without a connection. */
function cachePage() {
  if (!registration || !registration.active) return;
  const elements = [
    ...document.querySelectorAll('script[src],img,link[rel=icon],link[rel=manifest]'),
  ];
  const urls = elements.map((element) => element.currentSrc || element.src || element.href);
  registration.active.postMessage({ urlsToCache: [new URL(at, location).href, ...urls] });
}

async function sendSubscription(method, body) {
  const headers = { 'content-type': 'application/json' };
  const request = { method, headers, body: JSON.stringify(body) };
  const response = await fetch(at + '/push', request);
  if (!response.ok) throw new Error('push: ' + response.status);
}
async function subscribe() {
  if ((await Notification.requestPermission()) !== 'granted') return;
  const key = atob(main.dataset.pushKey.replace(/-/g, '+').replace(/_/g, '/'));
  const applicationServerKey = Uint8Array.from(key, (character) => character.charCodeAt(0));
  const created = await registration.pushManager.subscribe({
    userVisibleOnly: true,
    applicationServerKey,
  });
  try {
    await sendSubscription('POST', created);
  } catch (error) {
    await created.unsubscribe();
    throw error;
  }
  subscription = created;
}
async function unsubscribe() {
  await sendSubscription('DELETE', { endpoint: subscription.endpoint });
  await subscription.unsubscribe();
  subscription = null;
}

document.addEventListener('click', async (event) => {
  if (event.target.closest('.wallet')) return recordUse();
  const button = event.target.closest('button');
  if (!button || button.closest('dialog,form')) return;
  if (button.id === 'not-now') return recordUse();
  if (button.id === 'enlarge') return enlargeCode();
  button.disabled = true;
  try {
    if (button.id === 'notify') {
      show('failed', false);
      await (subscription ? unsubscribe() : subscribe());
    } else if (button.id === 'install' && installation) {
      const prompt = installation;
      installation = null;
      await prompt.prompt();
    }
  } catch {
    show('failed', true);
  }
  button.disabled = false;
  updateButtons();
});
addEventListener('beforeinstallprompt', (event) => {
  event.preventDefault();
  installation = event;
  updateButtons();
});
// A hidden page needs no connection: the next one brings the changes that it missed.
document.addEventListener('visibilitychange', () => {
  listen();
  // Browsers release it with the page.
  if (!document.hidden && byId('large')) keepScreenOn();
});
// A connection that was lost may seem to be open for minutes, and what it still delivers proves nothing.
addEventListener('offline', () => {
  stopListening();
  setConnected(false);
  schedule(15000, catchUp);
});
addEventListener('online', () => {
  if (!document.hidden) catchUp();
});
addEventListener('pagehide', stopListening);
addEventListener('pageshow', (event) => {
  if (event.persisted) listen();
});

async function register() {
  if (!('serviceWorker' in navigator)) return;
  // The network has responded after all to the request for this page, instead of which the stored one was shown.
  navigator.serviceWorker.addEventListener('message', ({ data }) => {
    if (data.page === null) location.reload();
    else showState(++requestCount, data.page);
  });
  await navigator.serviceWorker.register(at + '/worker.js', { scope: at });
  registration = await navigator.serviceWorker.ready;
  cachePage();
  if (!registration.pushManager || !byId('notify')) return;
  subscription = await registration.pushManager.getSubscription();
  updateButtons();
  // The card may have moved to another link, or the server may have lost the subscription.
  if (subscription) await sendSubscription('POST', subscription);
}
// The welcome is for this visit alone, not for a bookmark or a shared link.
if (location.search) history.replaceState(history.state, '', at);
updateButtons();
listen();
register().catch((error) => console.warn(String(error)));
