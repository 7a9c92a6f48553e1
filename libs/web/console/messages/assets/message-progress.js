// Renews how far a message is sent, until it is sent. Without it there is a link.
const EVERY_MS = 4000;
const DEADLINE_MS = 15000;
const MAX_RENEWALS = 150;

async function renew() {
  const response = await fetch(location.pathname, {
    redirect: 'error',
    signal: AbortSignal.timeout(DEADLINE_MS),
  });
  if (!response.ok) throw new Error(`status ${response.status}`);
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const progress = page.getElementById('message-progress');
  if (progress) document.getElementById('message-progress').replaceChildren(...progress.childNodes);
  else location.replace(location.pathname);
  return progress !== null;
}

async function follow() {
  let isBeingSent = true;
  for (let i = 0; isBeingSent && i < MAX_RENEWALS; i++) {
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    // The next time may succeed, and the link stays.
    if (!document.hidden) isBeingSent = await renew().catch(() => true);
  }
}
follow();
