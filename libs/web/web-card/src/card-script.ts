import { createHash } from 'node:crypto';

/**
 * Keeps the page up to date and offers what only a script can: notifications, and a place on the home screen. It takes
 * every change from a page that the server has rendered anew, so it knows nothing of what a card shows.
 */
const TEXT = `(() => {
'use strict';
const byId = (id) => document.getElementById(id);
const show = (id, is) => { const found = byId(id); if (found) found.hidden = !is; };
let main = byId('card');
const at = main.dataset.at;
let source, watch, installation, registration, subscription;
let asked = 0, shown = 0;

function listen() {
  stop();
  source = new EventSource(at + '/events?since=' + main.dataset.tag);
  source.onopen = alive;
  source.addEventListener('alive', alive);
  source.addEventListener('changed', () => { alive(); refresh(); });
  source.onerror = () => {
    show('offline', true);
    // The browser connects again by itself unless the server has refused.
    if (source.readyState === EventSource.CLOSED) again(15000 + Math.random() * 30000, catchUp);
  };
}
function alive() {
  show('offline', false);
  again(75000);
}
function again(after, what = listen) {
  clearTimeout(watch);
  watch = setTimeout(what, after);
}
async function catchUp() {
  await refresh();
  listen();
}
function stop() {
  clearTimeout(watch);
  if (source) source.close();
}

async function refresh() {
  const turn = ++asked;
  let response;
  try {
    response = await fetch(at, { cache: 'no-store' });
  } catch {
    return again(15000, catchUp);
  }
  if (response.status >= 429) return again(15000, catchUp);
  if (!response.ok || response.redirected) return location.reload();
  const text = await response.text();
  const style = '<style>' + document.querySelector('style').textContent + '</style>';
  // Another style has another hash than the policy of this page allows, even in a page that is only parsed.
  if (!text.includes(style)) return location.reload();
  const page = new DOMParser().parseFromString(text.replace(style, ''), 'text/html');
  const fresh = page.getElementById('card');
  // A later request has been answered already. Not by tags: after a restored backup they begin lower.
  if (turn < shown) return;
  shown = turn;
  const focused = document.activeElement && document.activeElement.id;
  const isNew = fresh.dataset.summary !== main.dataset.summary;
  main.replaceWith(document.adoptNode(fresh));
  main = fresh;
  document.title = page.title;
  if (isNew) {
    main.classList.add('changed');
    byId('said').textContent = main.dataset.summary;
  }
  offer();
  keep();
  if (focused && byId(focused)) byId(focused).focus();
}

function offer() {
  show('install', Boolean(installation));
  show('by-hand', navigator.standalone === false);
  const button = byId('notify');
  if (!button || !registration || !registration.pushManager || !('Notification' in window)) return;
  button.textContent = subscription ? button.dataset.off : button.dataset.on;
  button.hidden = Notification.permission === 'denied';
  show('blocked', Notification.permission === 'denied');
}

/** What the page is made of, so that it can be shown without a connection. */
function keep() {
  if (!registration || !registration.active) return;
  const found = [...document.querySelectorAll('script[src],img,link[rel=icon],link[rel=manifest]')];
  const urls = found.map((one) => one.currentSrc || one.src || one.href);
  registration.active.postMessage({ keep: [new URL(at, location).href, ...urls] });
}

async function tell(method, body) {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(at + '/push', { method, headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error('push: ' + response.status);
}
async function subscribe() {
  if (await Notification.requestPermission() !== 'granted') return;
  const key = atob(main.dataset.pushKey.replace(/-/g, '+').replace(/_/g, '/'));
  const applicationServerKey = Uint8Array.from(key, (character) => character.charCodeAt(0));
  const made = await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
  try {
    await tell('POST', made);
  } catch (error) {
    await made.unsubscribe();
    throw error;
  }
  subscription = made;
}
async function unsubscribe() {
  await tell('DELETE', { endpoint: subscription.endpoint });
  await subscription.unsubscribe();
  subscription = null;
}

document.addEventListener('click', async (event) => {
  const button = event.target.closest('button');
  if (!button) return;
  button.disabled = true;
  try {
    if (button.id === 'notify') {
      show('failed', false);
      await (subscription ? unsubscribe() : subscribe());
    } else if (button.id === 'install' && installation) {
      const asked = installation;
      installation = null;
      await asked.prompt();
    }
  } catch {
    show('failed', true);
  }
  button.disabled = false;
  offer();
});
addEventListener('beforeinstallprompt', (event) => {
  event.preventDefault();
  installation = event;
  offer();
});
// A card that nobody looks at needs no connection; what was missed comes with the next one.
document.addEventListener('visibilitychange', () => (document.hidden ? stop() : listen()));
addEventListener('pagehide', stop);
addEventListener('pageshow', (event) => { if (event.persisted) listen(); });

async function register() {
  if (!('serviceWorker' in navigator)) return;
  await navigator.serviceWorker.register(at + '/worker.js', { scope: at });
  registration = await navigator.serviceWorker.ready;
  keep();
  if (!registration.pushManager || !byId('notify')) return;
  subscription = await registration.pushManager.getSubscription();
  offer();
  // The card may go on under another link, or the server may have lost it.
  if (subscription) await tell('POST', subscription);
}
offer();
if (!document.hidden) listen();
register().catch((error) => console.warn(String(error)));
})();
`;

const hash = createHash('sha256').update(TEXT).digest('hex').slice(0, 16);

/** Its address changes with it, so it may be kept for ever. */
export const CARD_SCRIPT = { text: TEXT, folder: 'web-card', file: `card-${hash}.js` } as const;

export const CARD_SCRIPT_PATH = `/${CARD_SCRIPT.folder}/${CARD_SCRIPT.file}`;
