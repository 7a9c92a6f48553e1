// Counts whom a message reaches, and draws its preview, while it is written. Without it there is a button.
const form = document.getElementById('message-form');
const result = document.getElementById('message-result');
const failed = document.getElementById('message-failed');
const WAIT_MS = 500;
const DEADLINE_MS = 15000;

let timer;
let running;

async function update() {
  running?.abort();
  const request = new AbortController();
  running = request;
  const timeout = setTimeout(() => request.abort(), DEADLINE_MS);
  const fields = new URLSearchParams(new FormData(form));
  fields.set('step', 'count');
  try {
    const response = await fetch(form.action, {
      method: 'POST',
      body: fields,
      // To the page for signing in, once the session has ended.
      redirect: 'error',
      signal: request.signal,
    });
    if (!response.ok) throw new Error(`status ${response.status}`);
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    result.replaceChildren(...page.getElementById('message-result').childNodes);
    failed.hidden = true;
  } catch {
    // A newer request has replaced this one, or it failed.
    if (running === request) failed.hidden = false;
  } finally {
    clearTimeout(timeout);
  }
}

form.addEventListener('input', () => {
  clearTimeout(timer);
  timer = setTimeout(update, WAIT_MS);
});
