import fs from 'node:fs';
import path from 'node:path';

const folder = 'libs/web';
const wanted = /[.](eta|css|svg|js)$/;

/** @returns {string[]} the files that pages are drawn from, from the root of the project */
export function viewsIn(root) {
  const full = path.join(root, folder);
  if (!fs.existsSync(full)) return [];
  return fs
    .readdirSync(full, { recursive: true, encoding: 'utf8' })
    .filter((file) => wanted.test(file))
    .map((file) => path.join(folder, file));
}

/** Into dist, beside the code that reads them. */
export function copyViews(root) {
  for (const file of viewsIn(root)) {
    const target = path.join(root, 'dist', file);
    fs.mkdirSync(path.dirname(target), { recursive: true });
    fs.copyFileSync(path.join(root, file), target);
  }
}

/** @param {() => void} onCopied after each change */
export function watchViews(root, onCopied) {
  let settle;
  const watcher = fs.watch(path.join(root, folder), { recursive: true }, (_event, file) => {
    if (file === null || !wanted.test(file)) return;
    clearTimeout(settle);
    // Editors write a file in several steps.
    settle = setTimeout(() => {
      copyViews(root);
      onCopied();
    }, 300);
  });
  // What is watched keeps nothing running.
  watcher.unref();
}
