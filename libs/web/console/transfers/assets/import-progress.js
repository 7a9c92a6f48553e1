// Replaces the progress of an import while somebody is at work on it, and loads the page anew at the end.
const EVERY_MS = 1500;
const SHORTEST_MS = 250;
const FAILED_WAIT_MS = 10_000;
/** How long a click on a link or a button may take until the next page is there. */
const LEAVING_MS = 20_000;
const ID = 'import-progress';

let clickedAt = -Infinity;

async function update() {
  const response = await fetch(location.href, { headers: { accept: 'text/html' } });
  if (!response.ok) throw new Error(String(response.status));
  const page = new DOMParser().parseFromString(await response.text(), 'text/html');
  const [now, next] = [document.getElementById(ID), page.getElementById(ID)];
  if (!next) {
    // Loading this page anew would cancel the navigation to the page that was clicked.
    if (performance.now() - clickedAt < LEAVING_MS) return true;
    // Without the flash message of what was done before.
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

// Not `beforeunload`, which iPhones and iPads lack. A click that stays on the page only delays the load at the end.
addEventListener(
  'click',
  ({ target }) => {
    if (target.closest('a, button')) clickedAt = performance.now();
  },
  { capture: true },
);
document.querySelector(`#${ID} a`).hidden = true;
void follow(SHORTEST_MS);
