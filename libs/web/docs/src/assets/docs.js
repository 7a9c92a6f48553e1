const { root } = document.body.dataset;
const button = document.querySelector('.docs-search');
const finder = document.querySelector('.docs-finder');
const input = finder.querySelector('input');
const list = finder.querySelector('ul');
const none = finder.querySelector('.docs-none');
const SHOWN = 12;

/* The address of this service, as the reader has it. */
for (const place of document.querySelectorAll('.address')) {
  place.textContent = location.origin + root;
}

/* A button on each piece of code. */
for (const figure of document.querySelectorAll('figure.code')) {
  if (!navigator.clipboard) break;
  const copy = document.createElement('button');
  copy.type = 'button';
  copy.textContent = 'Copy';
  copy.addEventListener('click', async () => {
    await navigator.clipboard.writeText(figure.querySelector('code').textContent);
    copy.textContent = 'Copied';
    setTimeout(() => (copy.textContent = 'Copy'), 2000);
  });
  figure.append(copy);
}

let index;

async function load() {
  index ??= fetch(`${root}/docs/search.json`)
    .then((answer) => answer.json())
    .then((entries) =>
      entries.map((entry) => ({
        ...entry,
        inTitle: entry.title.toLowerCase(),
        inAbout: entry.about.toLowerCase(),
        inText: entry.text.toLowerCase(),
      })),
    );
  return index;
}

/* Every word has to be there; where it is decides the order. */
function find(entries, wanted) {
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return entries
    .map((entry) => ({ entry, score: scoreOf(entry, words) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, SHOWN)
    .map(({ entry }) => entry);
}

function scoreOf({ inTitle, inAbout, inText }, words) {
  let sum = 0;
  for (const word of words) {
    const score =
      (inTitle === word ? 20 : 0) +
      (inTitle.split(/[^\p{L}\p{N}]+/u).some((part) => part.startsWith(word)) ? 12 : 0) +
      (inTitle.includes(word) ? 4 : 0) +
      (inAbout.includes(word) ? 3 : 0) +
      (inText.includes(word) ? 1 : 0);
    if (score === 0) return 0;
    sum += score;
  }
  return sum;
}

function show(found) {
  list.replaceChildren(
    ...found.map(({ title, about, path }, i) => {
      const item = document.createElement('li');
      item.role = 'option';
      item.id = `found-${i}`;
      const link = document.createElement('a');
      link.href = root + path;
      link.tabIndex = -1;
      const name = document.createElement('strong');
      name.textContent = title;
      const beside = document.createElement('small');
      beside.textContent = about;
      link.append(name, beside);
      item.append(link);
      return item;
    }),
  );
  choose(0);
}

function choose(i) {
  const items = [...list.children];
  for (const [at, item] of items.entries()) item.setAttribute('aria-selected', String(at === i));
  if (items[i]) input.setAttribute('aria-activedescendant', items[i].id);
  else input.removeAttribute('aria-activedescendant');
  items[i]?.scrollIntoView({ block: 'nearest' });
}

function chosen() {
  return [...list.children].findIndex((item) => item.getAttribute('aria-selected') === 'true');
}

function open() {
  if (finder.open) return;
  finder.showModal();
  input.select();
  void load();
}

async function search() {
  const wanted = input.value;
  const entries = await load().catch(() => null);
  if (input.value !== wanted) return;
  if (entries === null) {
    index = undefined;
    none.textContent = 'The search cannot be reached right now.';
    return;
  }
  const found = find(entries, wanted);
  show(found);
  none.textContent = found.length === 0 && wanted.trim() !== '' ? 'Nothing found.' : '';
}

button.hidden = false;
button.addEventListener('click', open);
input.addEventListener('input', search);
finder.addEventListener('click', (event) => {
  // Beside the box, or on a place on the page that is open already.
  if (event.target === finder || event.target.closest('a')) finder.close();
});
finder.addEventListener('keydown', (event) => {
  const count = list.children.length;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && count > 0) {
    event.preventDefault();
    choose((chosen() + step + count) % count);
  } else if (event.key === 'Enter' && event.target === input) {
    event.preventDefault();
    list.children[chosen()]?.querySelector('a').click();
  }
});
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.closest('input, textarea, select, [contenteditable]');
  const isSlash = event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey;
  const isShortcut = event.key === 'k' && (event.ctrlKey || event.metaKey);
  if (!isSlash && !isShortcut) return;
  event.preventDefault();
  open();
});
