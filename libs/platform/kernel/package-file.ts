import { existsSync } from 'node:fs';

/**
 * Returns the URL of a file in the package.
 * @param path relative to the folder of package.json
 */
export function getPackageFileUrl(path: string): URL {
  let folder = new URL('.', import.meta.url);
  while (!existsSync(new URL('package.json', folder))) {
    const parent = new URL('..', folder);
    if (parent.href === folder.href) throw new Error(`${path} belongs to no package`);
    folder = parent;
  }
  return new URL(path, folder);
}
