/** The scanner: one scan is one stamp, and the outcome fills the screen. It works without a connection too. */
const config = JSON.parse(document.getElementById('counter-config').textContent);
const { texts } = config;
const element = (id) => document.getElementById(id);
const [say, typed, result, field] = ['say', 'typed', 'result', 'code'].map(element);

/** While a stamping waits here, the page itself asks before a second one of its card. */
const RECENT_MS = 120000;
const REQUEST_MS = 10000;
const RETRY_MS = 5000;
const HOUR_MS = 3600000;
const BATCH_SIZE = 50;

const queue = new CounterQueue(config.accountId, config.session);
const display = new CounterScreen(config, queue);
let { csrf } = config;
let isSignedIn = true;
let sending = null;
/** Until when the page that was asked for in place of this one may come. */
let replacingUntil = 0;
/** Results of operations that somebody is looking at, by receipt number. */
const live = new Map();
/** Nothing that is only shown, or done once more later, may keep a stamp from being counted. */
const logFailure = (error) => console.debug(error);
const showWaiting = () => display.showWaiting(live).catch(logFailure);
const showRefused = () => display.showRefused().catch(logFailure);

/* Who is signed in */

/** Stores who is signed in; the page that was stored, which is nobody's, reads it. */
const present = (async () => {
  const session = await queue.readSession();
  if (config.session) {
    // The former session has ended, wherever that was.
    if (session && session.session_id !== config.session.session_id) await forgetPerson();
    await queue.writeSession(config.session);
  } else display.present = session ?? null;
})().catch(logFailure);

/** Tells whether whoever this page is for is still signed in, as far as this browser knows. The service checks it again. */
async function isPresent() {
  await present;
  try {
    const session = await queue.readSession();
    return (
      session !== undefined &&
      session.session_id === display.present?.session_id &&
      session.user_id === display.present.user_id
    );
  } catch (error) {
    console.debug(error);
    return true;
  }
}

/** Shows the page of whoever has signed in elsewhere in this browser since it was loaded, or that nobody is. */
async function checkPresence() {
  if (!isSignedIn || (await isPresent())) return;
  if (config.session && (await queue.readSession())) location.reload();
  else if (config.session) endSession();
}

/* Stamping */

const createReceipt = () => `counter-${crypto.randomUUID()}`;

/**
 * Puts an operation into the queue, and sends it at once if there is a connection.
 * @param form which does the same without a script
 */
async function enqueue(operation, form = typed) {
  const entry = {
    stamps: operation.operation === 'stamp' ? 1 : undefined,
    ...operation,
    occurred_at: new Date().toISOString(),
    // Without a session it is nobody's until somebody confirms it.
    ...(isSignedIn && (await isPresent()) && display.present),
  };
  live.set(entry.external_ref, entry.asks);
  try {
    await queue.add({ ...entry, asks: undefined });
    void showWaiting();
    if (entry.user_id === undefined) {
      saveForLater(entry);
      return isSignedIn ? await checkPresence() : endSession();
    }
    if (!navigator.onLine || !config.session) return saveForLater(entry);
    await send();
    // Another send may have been under way when it was added.
    if (live.has(entry.external_ref)) await send();
    if (live.has(entry.external_ref) && isSignedIn) saveForLater(entry);
  } catch (error) {
    console.debug(error);
    if (live.delete(entry.external_ref)) sendForm(form, entry);
  }
}

/**
 * Sends a form as without a script, because this phone stores nothing: its disk is full, or the browser has lost it. The
 * receipt number is that of the entry, which may have been stored or sent after all.
 */
function sendForm(form, { code = '', external_ref: receipt }) {
  // The next scan tries the storage again.
  queue.close();
  if (!navigator.onLine || !config.session || !isSignedIn) {
    return display.showNotice(code, texts.notSaved, 'bad');
  }
  form.elements.external_ref.value = receipt;
  if (code) form.elements.code.value = code;
  // A later scan may have taken the place of the outcome that it was part of.
  if (!form.isConnected) document.body.append(form);
  form.submit();
  setTimeout(() => display.showNotice(code, texts.noResponse, 'bad'), REQUEST_MS + 2000);
}

/** Stamps the card with a code. */
async function scan(code) {
  display.showProgress(texts.stamping.replace('{code}', code.replace(/^.{4}/, '$& ')));
  const operation = { operation: 'stamp', code, external_ref: createReceipt() };
  const first = await findWaiting(code).catch(logFailure);
  if (first) return display.ask(code, first, () => enqueue({ ...operation, asks: false }));
  return enqueue({ ...operation, asks: true });
}

/**
 * Finds the last stamping of the card that waits here since a moment ago: the service does not know it and cannot ask.
 * Browsers call a network without internet a connection, so that does not tell.
 */
async function findWaiting(code) {
  const entries = await queue.list('waiting');
  const from = Date.now() - RECENT_MS;
  return entries.findLast((entry) => entry.code === code && Date.parse(entry.occurred_at) > from);
}

function saveForLater(entry) {
  live.delete(entry.external_ref);
  const isStamp = entry.operation === 'stamp';
  const text = isStamp ? texts.savedWhy : texts.savedReward;
  display.showNotice([texts.saved, entry.code].filter(Boolean).join(': '), text, 'warn');
  void showWaiting();
}

/** Sends what waits for this user, one batch after the other. Only one is under way at a time. */
function send() {
  sending ??= sendAll().finally(() => {
    sending = null;
  });
  return sending;
}

async function sendAll() {
  if (!config.session) return leaveOfflinePage();
  const sent = [];
  while (isSignedIn && navigator.onLine) {
    const all = await queue.list('waiting');
    const entries = all
      .filter((entry) => entry.user_id === config.session.user_id)
      .slice(0, BATCH_SIZE);
    if (entries.length === 0) break;
    const operations = entries.map(({ user_id: _user, account_id: _account, ...operation }) => ({
      ...operation,
      // What is sent at once happens now, whatever the clock of the phone says.
      occurred_at: live.has(operation.external_ref) ? undefined : operation.occurred_at,
      asks: live.get(operation.external_ref) === true,
    }));
    const response = await request('/batch', { operations, sent_at: new Date().toISOString() });
    if (!response) break;
    for (const outcome of response.results) {
      const entry = entries.find(({ external_ref }) => external_ref === outcome.external_ref);
      if (outcome.status === 200 && !live.has(entry.external_ref)) sent.push(entry);
      if (outcome.status < 500) await settle(entry, outcome);
    }
    // The rest is tried again later. What was executed is not held up by it.
    if (response.results.some(({ status }) => status >= 500)) {
      display.link = 'unavailable';
      break;
    }
  }
  await showWaiting();
  if (sent.length > 0) display.showSent(sent);
}

async function settle(entry, outcome) {
  const isLive = live.delete(entry.external_ref);
  // The session had ended by then, unknown to this browser.
  if (outcome.is_unattended) {
    await queue.add({ ...entry, user_id: undefined, session_id: undefined });
    if (isLive) saveForLater(entry);
  } else if (isLive) {
    display.showOutcome(outcome, outcome.is_redemption ? 'redeemed' : 'good');
    await queue.remove(entry.external_ref);
  } else if (outcome.status === 200) await queue.remove(entry.external_ref);
  else {
    const who = [outcome.name, entry.code].filter(Boolean).join(', ');
    await queue.refuse(entry, `${who}: ${outcome.problem}`);
    await showRefused();
  }
}

/** Books what was scanned while nobody was signed in for whoever says that it is theirs, or removes it. */
if (config.session) {
  display.onChoice = async (entries, isConfirmed) => {
    for (const entry of entries) {
      if (!isConfirmed) await queue.remove(entry.external_ref);
      else await queue.add({ ...entry, ...config.session, is_confirmed: true });
    }
    await showWaiting();
    if (isConfirmed) await send();
  };
}

/** Replaces the page that was stored by that of whoever is signed in, once nobody looks at an outcome or types. */
async function leaveOfflinePage() {
  if (performance.now() < replacingUntil) return;
  if (!navigator.onLine || !isSignedIn || !result.hidden || field.value !== '') return;
  await refreshSession();
}

/** @returns the JSON of the response; undefined when it is to be tried again later */
async function request(path, body) {
  const headers = { accept: 'application/json', 'x-csrf-token': csrf };
  const isForm = body instanceof URLSearchParams;
  if (!isForm) headers['content-type'] = 'application/json';
  try {
    const response = await fetch(config.path + path, {
      method: 'POST',
      redirect: 'manual',
      headers,
      body: isForm ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    if (response.ok) {
      const json = await response.json();
      display.link = '';
      return json;
    }
    if (response.type === 'opaqueredirect') endSession();
    else if (response.status === 403) await refreshSession();
    else display.link = response.status === 429 ? 'busy' : 'unavailable';
  } catch (error) {
    console.debug(error);
    display.link = 'unavailable';
  }
  return undefined;
}

/** Finds out who is signed in, if somebody has signed in elsewhere in this browser since the page was loaded. */
async function refreshSession() {
  try {
    const response = await fetch(`${config.path}/state`, {
      redirect: 'manual',
      headers: { accept: 'application/json' },
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    if (response.type === 'opaqueredirect') return endSession();
    if (!response.ok) return undefined;
    const state = await response.json();
    const { session } = config;
    if (state.session_id !== session?.session_id || state.user_id !== session.user_id) {
      return replacePage();
    }
    csrf = state.csrf;
    for (const field of document.querySelectorAll('input[name=_csrf]')) field.value = csrf;
  } catch (error) {
    console.debug(error);
  }
}

/** Loads the page again, however slow the network is: this one stays until then. */
function replacePage() {
  replacingUntil = performance.now() + 12 * RETRY_MS;
  location.replace(`${config.path}?wait`);
}

function endSession() {
  isSignedIn = false;
  // The next person at this phone need not know who it was, nor who was refused.
  element('person')?.remove();
  void forgetPerson().catch(logFailure).then(showRefused);
  const link = createElement('a', texts.signInLink, 'button confirm');
  link.href = config.path;
  display.openResult(createOutcome(texts.signedOut, texts.signIn, [link]), { kind: 'warn' });
}

/* The buttons of an outcome */

result.addEventListener('submit', async (event) => {
  event.preventDefault();
  const form = event.target;
  const fields = new URLSearchParams(new FormData(form));
  const { kind } = form.dataset;
  display.holdButtons();
  if (kind === 'add' || kind === 'redeem') {
    const operation = {
      operation: kind === 'add' ? 'stamp' : 'redeem',
      customer_card_id: Number(fields.get('customer_card_id')),
      reward_id: kind === 'redeem' ? Number(fields.get('reward_id')) : undefined,
      external_ref: fields.get('external_ref'),
      asks: false,
    };
    return enqueue(operation, form);
  }
  const outcome = await request(kind === 'undo' ? '/undo' : '/confirm', fields);
  if (outcome) {
    const tone = kind === 'undo' ? 'undone' : 'good';
    display.showOutcome({ ...outcome, event_id: null }, tone);
  } else if (isSignedIn) display.showProblem(texts.noResponse);
});
result.addEventListener('click', (event) => {
  const link = event.target.closest('[data-kind=close]');
  if (!link) return;
  event.preventDefault();
  display.closeResult();
});

/** Stamps the card with a code. */
function takeCode(code) {
  camera.describe();
  field.value = '';
  void scan(code);
}

const codes = new CounterCodes(config, {
  code: takeCode,
  // A question stays until somebody chooses.
  isBusy: () =>
    !result.hidden && result.querySelector('.question') && !result.classList.contains('small'),
  other: () => (say.textContent = texts.noCard),
  nothing: () => camera.describe(),
});
addEventListener('keydown', (event) => event.key === 'Escape' && display.decline());

const camera = new CounterView(config, {
  codes: (barcodes) => codes.see(barcodes),
  decoder: () => void storePage(),
});

document.addEventListener('visibilitychange', () => {
  if (document.visibilityState !== 'visible') return camera.stop();
  void camera.start();
  void checkPresence().catch(logFailure);
});
// The browser shows again what it showed before somebody signed out.
addEventListener('pageshow', (event) => event.persisted && location.reload());

/* Without a connection */

for (const name of ['online', 'offline']) {
  addEventListener(name, () => {
    void showWaiting();
    void send().catch(logFailure);
  });
}
setInterval(() => void send().catch(logFailure), RETRY_MS);
setInterval(() => void showRefused(), HOUR_MS);

for (const form of document.querySelectorAll('form[action$="/app/sign-out"]')) {
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    await forgetPerson().catch(logFailure);
    form.submit();
  });
}

async function installWorker() {
  if (!('serviceWorker' in navigator)) return;
  await navigator.serviceWorker.register(config.worker, { scope: config.scope });
  await storePage();
}

/** Lets the worker store the page for when there is no connection. */
async function storePage() {
  if (!('serviceWorker' in navigator) || !config.session) return;
  const { active } = await navigator.serviceWorker.ready;
  const hasDecoder = !('BarcodeDetector' in window) || camera.hasDecoder;
  const decoder = hasDecoder ? Object.values(config.decoder) : [];
  active.postMessage({
    page: location.origin + config.path,
    offline: config.offline,
    shell: [...config.shell, ...decoder].map((path) => new URL(path, location.origin).href),
  });
}

/** Says that the page which somebody has opened is another one, instead of which the worker shows this. */
function showUnreachable() {
  if (location.search === '?wait') history.replaceState(null, '', location.pathname);
  if (config.session || !location.pathname.startsWith(`${config.path}/`)) return;
  history.replaceState(null, '', config.path);
  display.showNote(texts.unreachable);
}

void (async () => {
  showUnreachable();
  void camera.start();
  void queue.persist().catch(logFailure);
  await present;
  await Promise.all([showWaiting(), showRefused()]);
  await installWorker().catch(logFailure);
  await send();
})().catch(logFailure);
