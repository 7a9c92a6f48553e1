import fs from 'node:fs';
import path from 'node:path';

/** Files that the running service reads besides its code: views, and the SQL of migrations. */
const folders = ['libs', 'apps/schema'];
const pattern = /[.](eta|css|svg|js|json|sql)$/;

const TEXTS = 'libs/translations';

const guides = 'docs/guides';
const receivers = 'docs/receivers';
const pictures = 'docs/pictures';
const pages = [
  'docs/webhooks.md',
  'docs/api.md',
  'docs/admin-api.md',
  'clients/typescript/README.md',
  'clients/python/README.md',
  'CHANGELOG.md',
];
/** The rendered guides, in dist. */
export const GUIDES = 'docs/guides.json';

/** @returns {string[]} those files, from the root of the project */
export function listViews(root) {
  return folders.flatMap((folder) => {
    const full = path.join(root, folder);
    if (!fs.existsSync(full)) return [];
    return fs
      .readdirSync(full, { recursive: true, encoding: 'utf8' })
      .filter((file) => pattern.test(file))
      .map((file) => path.join(folder, file));
  });
}

/** Copies views into dist, beside the code that reads them. */
export function copyViews(root) {
  for (const file of listViews(root)) {
    const target = path.join(root, 'dist', file);
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.copyFileSync(path.join(root, file), target);
  }
  removeOldTexts(root);
}

/** Removes languages that have no source any more: the folder says which there are. */
function removeOldTexts(root) {
  const [source, built] = [root, path.join(root, 'dist')].map((parent) => path.join(parent, TEXTS));
  if (!fs.existsSync(built)) return;
  for (const file of fs.readdirSync(built))
    if (file.endsWith('.json') && !fs.existsSync(path.join(source, file)))
      fs.rmSync(path.join(built, file));
}

/** @returns {string[]} the documents that are pages of the service too, from the root of the project */
export function listGuides(root) {
  const full = path.join(root, guides);
  if (!fs.existsSync(full)) return [];
  const names = fs.readdirSync(full).filter((name) => name.endsWith('.md'));
  return [...names.sort().map((name) => `${guides}/${name}`), ...pages].filter((file) =>
    fs.existsSync(path.join(root, file)),
  );
}

/** @returns {string[]} the files that guides offer for download, from the root of the project */
export function listReceivers(root) {
  const full = path.join(root, receivers);
  if (!fs.existsSync(full)) return [];
  const names = fs
    .readdirSync(full)
    .filter((name) => /[.](cs|go|java|mjs|php|pl|py|rb|sh)$/.test(name));
  return names.sort().map((name) => `${receivers}/${name}`);
}

/** Renders guides into dist. What renders them is only there once the packages are installed. */
export async function renderGuides(root) {
  const { renderGuide } = await import('./guides.mjs');
  const read = (file) => fs.readFileSync(path.join(root, file), 'utf8');
  const drawn = {
    guides: listGuides(root).map((file) => renderGuide(file, read(file))),
    receivers: listReceivers(root).map((file) => ({
      path: `/${file}`,
      name: path.basename(file),
      text: read(file),
    })),
  };
  const target = path.join(root, 'dist', GUIDES);
  fs.mkdirSync(path.dirname(target), { recursive: true });
  fs.writeFileSync(target, JSON.stringify(drawn));
  fs.cpSync(path.join(root, pictures), path.join(root, 'dist', pictures), { recursive: true });
}

/**
 * @param {() => void} onCopied after each change
 * @param {AbortSignal} signal
 */
export function watchViews(root, onCopied, signal) {
  const onChanged = () => {
    copyViews(root);
    onCopied();
  };
  for (const folder of folders) watch(path.join(root, folder), pattern, onChanged, signal);
  const documents = /^(guides[/\\].+|webhooks|api)[.]md$|^receivers[/\\]/;
  const onWritten = () => void renderGuides(root).then(onCopied);
  watch(path.join(root, 'docs'), documents, onWritten, signal);
}

/**
 * Calls back after changes of files in a folder.
 * @param {AbortSignal} signal ends it: until then the process keeps running
 */
export function watch(place, pattern, onChanged, signal) {
  let settle;
  signal.addEventListener('abort', () => clearTimeout(settle), { once: true });
  fs.watch(place, { recursive: true, signal }, (_event, file) => {
    if (file === null || !pattern.test(file)) return;
    clearTimeout(settle);
    // Editors write a file in several steps.
    settle = setTimeout(onChanged, 300);
  });
}
