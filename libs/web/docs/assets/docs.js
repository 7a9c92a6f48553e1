const { root } = document.body.dataset;
const button = document.querySelector('.docs-search');
const finder = document.querySelector('.docs-finder');
const input = finder.querySelector('input');
const list = finder.querySelector('ul');
const none = finder.querySelector('.docs-none');
const MAX_RESULTS = 12;

/* Shows the address of this service as the reader's browser has it. */
for (const place of document.querySelectorAll('.address')) {
  place.textContent = location.origin + root;
}

/* Shows one of several equivalent samples: in the language that was chosen last, here or in the reference. */
const LANGUAGE = 'scalar-reference-selected-client-v2';
const groups = [...document.querySelectorAll('.samples')].map((group) => ({
  group,
  figures: [...group.querySelectorAll('figure')],
  buttons: [],
}));

function readStoredLanguage() {
  try {
    return localStorage.getItem(LANGUAGE)?.replace('custom/', '');
  } catch {
    // The browser may block storage.
    return undefined;
  }
}

function showLanguage(language) {
  for (const { figures, buttons } of groups) {
    const match = figures.findIndex(({ dataset }) => dataset.language === language);
    const shownIndex = Math.max(match, 0);
    for (const [at, figure] of figures.entries()) figure.hidden = at !== shownIndex;
    for (const [at, button] of buttons.entries()) {
      button.setAttribute('aria-pressed', String(at === shownIndex));
      // A phone is not wide enough for every language.
      const row = button.parentElement;
      if (at === shownIndex && row) row.scrollLeft = button.offsetLeft - row.clientWidth / 2;
    }
  }
}

for (const { group, figures, buttons } of groups) {
  const choice = document.createElement('div');
  choice.className = 'docs-languages';
  choice.role = 'group';
  choice.ariaLabel = 'Language';
  for (const { dataset } of figures) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = dataset.title;
    button.addEventListener('click', () => {
      const before = button.getBoundingClientRect().top;
      showLanguage(dataset.language);
      // Samples above may have become longer or shorter.
      scrollBy({ top: button.getBoundingClientRect().top - before, behavior: 'instant' });
      try {
        localStorage.setItem(LANGUAGE, `custom/${dataset.language}`);
      } catch {
        // The choice then applies to this page only.
      }
    });
    buttons.push(button);
  }
  choice.append(...buttons);
  group.prepend(choice);
  group.classList.add('ready');
}
showLanguage(readStoredLanguage());

/* Adds a copy button to each code block. */
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

/* Opens the menu where the style always shows it, so that assistive technology finds its links. */
const panel = document.querySelector('.docs-menu');
const isWide = matchMedia('(width > 52rem)');

function openMenu() {
  if (panel) panel.open = isWide.matches;
}

isWide.addEventListener('change', openMenu);
openMenu();

/* Marks the section that is being read. */
const places = [...document.querySelectorAll('.docs-toc a, .docs-menu a[href*="#"]')].map(
  (link) => ({
    link,
    heading: document.getElementById(decodeURIComponent(link.hash.slice(1))),
  }),
);

let shown;

function showPlace() {
  const current = places.filter(({ heading }) => heading.getBoundingClientRect().top < 160).at(-1);
  if (current === shown) return;
  shown?.link.removeAttribute('aria-current');
  shown = current;
  shown?.link.setAttribute('aria-current', 'location');
  // The menu of the reference is longer than the window.
  if (!shown || !panel?.contains(shown.link) || panel.scrollHeight <= panel.clientHeight) return;
  const { top, bottom } = shown.link.getBoundingClientRect();
  const frame = panel.getBoundingClientRect();
  if (top < frame.top || bottom > frame.bottom) panel.scrollTop += top - frame.top - 120;
}

if (places.length > 0) {
  addEventListener('scroll', showPlace, { passive: true });
  showPlace();
}

let index;

async function loadIndex() {
  index ??= fetch(`${root}/docs/search.json`)
    .then((response) => response.json())
    .then((entries) =>
      entries.map((entry) => ({
        ...entry,
        inTitle: entry.title.toLowerCase(),
        inAbout: entry.about.toLowerCase(),
        inNames: entry.names.toLowerCase().split(' '),
        inText: entry.text.toLowerCase(),
      })),
    );
  return index;
}

/* Finds the entries with all words, best matches first. */
function findEntries(entries, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  return entries
    .map((entry) => ({ entry, score: computeScore(entry, words) }))
    .filter(({ score }) => score > 0)
    .sort((one, other) => other.score - one.score)
    .slice(0, MAX_RESULTS)
    .map(({ entry }) => entry);
}

/* Rules say everything once more, in short: they come after the pages that explain it. */
const WEIGHTS = {
  guide: 1.2,
  part: 1.1,
  operation: 1,
  error: 1,
  file: 1,
  rule: 0.3,
  setting: 0.3,
};

function computeScore({ inTitle, inAbout, inNames, inText, kind }, words) {
  let sum = inTitle === words.join(' ') ? 30 : 0;
  for (const word of words) {
    const parts = inTitle.split(/[^\p{L}\p{N}]+/u);
    const score =
      (inTitle === word ? 20 : 0) +
      (inTitle.startsWith(word) ? 5 : 0) +
      (parts.includes(word) ? 4 : 0) +
      (parts.some((part) => part.startsWith(word)) ? 12 : 0) +
      (inTitle.includes(word) ? 4 : 0) +
      (inNames.includes(word) ? 10 : 0) +
      (inNames.some((name) => name.startsWith(word)) ? 4 : 0) +
      // A field that is also a synonym: people look for this one, not for another with such a field.
      (inNames.indexOf(word) === inNames.lastIndexOf(word) ? 0 : 1) +
      (inAbout.includes(word) ? 3 : 0) +
      (inText.includes(word) ? 1 : 0);
    if (score === 0) return 0;
    sum += score;
  }
  return sum * WEIGHTS[kind];
}

function showResults(results) {
  list.replaceChildren(
    ...results.map(({ title, about, path }, i) => {
      const item = document.createElement('li');
      item.role = 'none';
      const link = document.createElement('a');
      link.role = 'option';
      link.id = `result-${i}`;
      link.href = root + path;
      link.tabIndex = -1;
      const name = document.createElement('strong');
      name.textContent = title;
      const description = document.createElement('small');
      description.textContent = about;
      link.append(name, description);
      item.append(link);
      return item;
    }),
  );
  selectOption(0);
}

function selectOption(i) {
  const links = listOptions();
  for (const [at, link] of links.entries()) link.setAttribute('aria-selected', String(at === i));
  if (links[i]) input.setAttribute('aria-activedescendant', links[i].id);
  else input.removeAttribute('aria-activedescendant');
  links[i]?.scrollIntoView({ block: 'nearest' });
}

function findSelectedIndex() {
  return listOptions().findIndex((link) => link.getAttribute('aria-selected') === 'true');
}

function listOptions() {
  return [...list.querySelectorAll('a')];
}

function openFinder() {
  if (finder.open) return;
  finder.showModal();
  input.select();
  void loadIndex();
}

async function search() {
  const query = input.value;
  const entries = await loadIndex().catch(() => null);
  if (input.value !== query) return;
  if (entries === null) {
    index = undefined;
    none.textContent = 'Search is not available right now.';
    return;
  }
  const results = findEntries(entries, query);
  showResults(results);
  none.textContent = results.length === 0 && query.trim() !== '' ? 'No results.' : '';
}

button.hidden = false;
button.addEventListener('click', openFinder);
input.addEventListener('input', search);
finder.addEventListener('click', (event) => {
  // Outside of the dialog, or on a link within the current page.
  if (event.target === finder || event.target.closest('a')) finder.close();
});
finder.addEventListener('keydown', (event) => {
  const count = list.children.length;
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && count > 0) {
    event.preventDefault();
    selectOption((findSelectedIndex() + step + count) % count);
  } else if (event.key === 'Enter' && event.target === input) {
    event.preventDefault();
    listOptions()[findSelectedIndex()]?.click();
  }
});
document.addEventListener('keydown', (event) => {
  const isTyping = event.target.closest('input, textarea, select, [contenteditable]');
  const isSlash = event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey;
  const isShortcut = event.key === 'k' && (event.ctrlKey || event.metaKey);
  if (!isSlash && !isShortcut) return;
  event.preventDefault();
  openFinder();
});
