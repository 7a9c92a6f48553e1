// Replaces the progress of an import while somebody is at work on it, and loads the page anew at the end.
const EVERY_MS = 1500;
const SHORTEST_MS = 250;
const FAILED_WAIT_MS = 10_000;
const ID = 'import-progress';

async function update() {
  const response = await fetch(location.href, { headers: { accept: 'text/html' } });
  if (!response.ok) throw new Error(String(response.status));
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const [now, next] = [document.getElementById(ID), page.getElementById(ID)];
  if (!next) {
    // Without the notice of what was done before.
    location.replace(location.pathname);
    return false;
  }
  const [bar, nextBar] = [now, next].map((section) => section.querySelector('progress'));
  bar.value = nextBar.value;
  bar.max = nextBar.max;
  now.querySelector('label').textContent = next.querySelector('label').textContent;
  now.querySelector('[role=status]').textContent = next.querySelector('[role=status]').textContent;
  return true;
}

async function follow(waitMs) {
  await new Promise((resolve) => setTimeout(resolve, waitMs));
  try {
    if (await update()) await follow(EVERY_MS);
  } catch {
    // The link to refresh the page stays.
    await follow(FAILED_WAIT_MS);
  }
}

document.querySelector(`#${ID} a`).hidden = true;
void follow(SHORTEST_MS);
