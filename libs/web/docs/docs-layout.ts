import { loadAsset, ICON } from '#web/pages/assets.js';
import { VERSION } from '#platform/kernel/version.js';
import { createPlainFrame, loadView } from '#web/pages/view.js';
import type { Guide, Menu, MenuLink } from './guides.js';

/** The frame of every page of the documentation. */

const STYLE = loadAsset(import.meta.url, './assets/docs.css');
const SCRIPT = loadAsset(import.meta.url, './assets/docs.js');

export type DocsPage = {
  title: string;
  summary: string;
  at: string;
  kind: 'guide' | 'reference' | 'scalar';
  menu: Menu;
  headings: Guide['headings'];
  /** The previous and the next page, in the order of the menu. */
  previous: MenuLink | null;
  next: MenuLink | null;
  html: string;
  /** The paths of further scripts. */
  scripts: string[];
};

const layout = loadView<DocsPage & { icon: string; style: string; version: string }>(
  import.meta.url,
  './views/docs.eta',
);

export function renderDocsPage(
  root: string,
  page: Pick<DocsPage, 'title' | 'summary' | 'at' | 'kind' | 'html'> & Partial<DocsPage>,
): string {
  const { scripts = [] } = page;
  const defaults = { menu: [], headings: [], previous: null, next: null };
  return layout(
    {
      ...defaults,
      ...page,
      icon: ICON.path,
      style: STYLE.path,
      version: VERSION,
      scripts: [SCRIPT.path, ...scripts],
    },
    createPlainFrame(root, 'en'),
  );
}

/** Builds the policy: everything comes from our own server. Scalar needs inline styles, and nothing else. */
const buildContentSecurityPolicy = (style: string) =>
  `default-src 'none'; script-src 'self'; style-src ${style}; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
export const POLICY = buildContentSecurityPolicy("'self'");
export const SCALAR_POLICY = buildContentSecurityPolicy("'self' 'unsafe-inline'");
