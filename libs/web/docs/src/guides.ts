import { readFileSync } from 'node:fs';
import { packageFile } from '#kernel/package-file.js';

export const HOME = '/docs';

/** A guide as the build has drawn it: see scripts/guides.mjs. */
export type Guide = {
  path: string;
  title: string;
  summary: string;
  html: string;
  headings: { id: string; text: string; depth: number }[];
  sections: { id: string | null; heading: string; text: string }[];
  /** Of the first page: all others, in their groups. */
  menu: Menu;
};

export type MenuLink = { path: string; name: string };

export type Menu = { title: string; links: MenuLink[] }[];

export function readGuides(): Guide[] {
  return JSON.parse(readFileSync(packageFile('dist/docs/guides.json'), 'utf8')) as Guide[];
}

/** @throws Error when a guide is missing, or in no menu */
export function getMenu(guides: readonly Guide[]): Menu {
  const menu = guides.flatMap((guide) => guide.menu);
  const linkedPaths = menu.flatMap(({ links }) => links.map(({ path }) => path));
  const guidePaths = guides.filter(({ path }) => path !== HOME).map(({ path }) => path);
  const mismatches = [
    ...linkedPaths.filter((path) => !guidePaths.includes(path)),
    ...guidePaths.filter((path) => !linkedPaths.includes(path)),
  ];
  if (mismatches.length > 0)
    throw new Error(`the menu of docs/guides/README.md is wrong about ${mismatches.join(', ')}`);
  return menu;
}
