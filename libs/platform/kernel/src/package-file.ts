import { existsSync } from 'node:fs';

/** A file that Inkpad comes with. @param path from the folder of package.json */
export function getPackageFileUrl(path: string): URL {
  let folder = new URL('.', import.meta.url);
  while (!existsSync(new URL('package.json', folder))) {
    const parent = new URL('..', folder);
    if (parent.href === folder.href) throw new Error(`${path} belongs to no package`);
    folder = parent;
  }
  return new URL(path, folder);
}
