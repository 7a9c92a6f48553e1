import { readFileSync } from 'node:fs';
import { getPackageFileUrl } from '#platform/kernel/package-file.js';

export const HOME = '/docs';
/** The operations of both APIs, which are no guides but in the menu. */
export const REFERENCE = '/docs/reference';
export const ADMIN_REFERENCE = '/docs/admin-reference';

/** A guide as rendered by the build (tools/build/guides.mjs). */
export type Guide = {
  path: string;
  title: string;
  summary: string;
  html: string;
  /** The same as Markdown, for programs that read. */
  markdown: string;
  headings: { id: string; text: string; depth: number }[];
  sections: { id: string | null; heading: string; text: string }[];
  /** The rules for clients, on the page that has them. */
  rules: { id: string; heading: string; text: string }[];
  /** On the home page: all other guides, in groups. */
  menu: Menu;
};

export type MenuLink = { path: string; name: string; about: string };

export type Menu = { title: string; links: MenuLink[] }[];

/** A program that guides offer for download. */
export type ReceiverFile = { path: string; name: string; text: string };

export function readGuides(): { guides: Guide[]; receivers: ReceiverFile[] } {
  const text = readFileSync(getPackageFileUrl('dist/docs/guides.json'), 'utf8');
  return JSON.parse(text) as { guides: Guide[]; receivers: ReceiverFile[] };
}

/** Returns the menu of the home page. @throws Error if a guide is missing, or not in the menu */
export function getMenu(guides: readonly Guide[]): Menu {
  const menu = guides.flatMap((guide) => guide.menu);
  const linkedPaths = menu.flatMap(({ links }) => links.map(({ path }) => path));
  const guidePaths = guides.map(({ path }) => path).filter((path) => path !== HOME);
  const mismatches = [
    ...linkedPaths.filter(
      (path) => path !== REFERENCE && path !== ADMIN_REFERENCE && !guidePaths.includes(path),
    ),
    ...guidePaths.filter((path) => !linkedPaths.includes(path)),
  ];
  if (mismatches.length > 0)
    throw new Error(
      `the menu of docs/guides/README.md does not match the guides: ${mismatches.join(', ')}`,
    );
  return menu;
}
