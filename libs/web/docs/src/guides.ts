import { readFileSync } from 'node:fs';
import { getPackageFileUrl } from '#kernel/package-file.js';

export const HOME = '/docs';

/** A guide as rendered by the build (scripts/guides.mjs). */
export type Guide = {
  path: string;
  title: string;
  summary: string;
  html: string;
  headings: { id: string; text: string; depth: number }[];
  sections: { id: string | null; heading: string; text: string }[];
  /** On the home page: all other guides, in groups. */
  menu: Menu;
};

export type MenuLink = { path: string; name: string };

export type Menu = { title: string; links: MenuLink[] }[];

export function readGuides(): Guide[] {
  return JSON.parse(readFileSync(getPackageFileUrl('dist/docs/guides.json'), 'utf8')) as Guide[];
}

/** Returns the menu of the home page. @throws Error if a guide is missing, or not in the menu */
export function getMenu(guides: readonly Guide[]): Menu {
  const menu = guides.flatMap((guide) => guide.menu);
  const linkedPaths = menu.flatMap(({ links }) => links.map(({ path }) => path));
  const guidePaths = guides.filter(({ path }) => path !== HOME).map(({ path }) => path);
  const mismatches = [
    ...linkedPaths.filter((path) => !guidePaths.includes(path)),
    ...guidePaths.filter((path) => !linkedPaths.includes(path)),
  ];
  if (mismatches.length > 0)
    throw new Error(
      `the menu of docs/guides/README.md does not match the guides: ${mismatches.join(', ')}`,
    );
  return menu;
}
