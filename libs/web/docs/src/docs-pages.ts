import type { FastifyInstance } from 'fastify';
import type { Config } from '#configuration/config.js';
import { getPackageFileUrl } from '#kernel/package-file.js';
import { VERSION_POLICY } from '#http/versioning.js';
import { loadAsset, ICON } from '#pages/assets.js';
import { getRootPath } from '#pages/page.js';
import { createPlainFrame, loadView } from '#pages/view.js';
import { readClientPackages, renderClientPackages, type ClientPackage } from './client-packages.js';
import { renderErrorCodes } from './error-codes.js';
import { serveChanging, serveCompressedFile, serveDownload, serveFixed } from './fixed-text.js';
import {
  HOME,
  REFERENCE,
  getMenu,
  readGuides,
  type Guide,
  type Menu,
  type MenuLink,
} from './guides.js';
import { renderLlmsIndex, renderMarkdownPage } from './markdown-pages.js';
import { readOpenApiDocument, type OpenApiDocument } from './openapi-document.js';
import { createPostmanCollection, POSTMAN } from './postman.js';
import { createReferenceDocument } from './reference.js';
import { createSearchIndex } from './search-index.js';
import { renderVersionState } from './version-state.js';

const STYLE = loadAsset(import.meta.url, './assets/docs.css');
const SCRIPT = loadAsset(import.meta.url, './assets/docs.js');
const REFERENCE_SCRIPT = loadAsset(import.meta.url, './assets/reference.js');

const layout = loadView<{
  title: string;
  summary: string;
  at: string;
  icon: string;
  style: string;
  scripts: string[];
  menu: Menu;
  headings: Guide['headings'];
  /** The previous and the next guide, in the order of the menu. */
  previous: MenuLink | null;
  next: MenuLink | null;
  html: string;
}>(import.meta.url, './views/docs.eta');

/** Builds the policy: everything comes from our own server. Scalar needs inline styles, and nothing else. */
const buildContentSecurityPolicy = (style: string) =>
  `default-src 'none'; script-src 'self'; style-src ${style}; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
const POLICY = buildContentSecurityPolicy("'self'");
const REFERENCE_POLICY = buildContentSecurityPolicy("'self' 'unsafe-inline'");

/** Serves /openapi.json, the guides and the reference. They do not change while the process runs. */
export function serveDocs(server: FastifyInstance, config: Config): void {
  const document = readOpenApiDocument(config.publicUrl);
  const root = getRootPath(config);
  const { guides, receivers } = readGuides();
  const menu = getMenu(guides);
  const json = (value: unknown) => ({
    type: 'application/json',
    policy: POLICY,
    body: JSON.stringify(value),
  });
  serveFixed(server, '/openapi.json', json(document));
  serveFixed(server, POSTMAN, json(createPostmanCollection(document, config.publicUrl)));
  serveFixed(server, '/docs/search.json', json(createSearchIndex(guides, document)));
  serveReference(server, { root, menu, document });
  const packages = readClientPackages();
  for (const { path, ...file } of packages)
    serveDownload(server, path, { ...file, policy: POLICY });
  const plain = { type: 'text/plain; charset=utf-8', policy: POLICY };
  for (const { path, name, text } of receivers)
    serveDownload(server, path, { ...plain, name, body: text });
  serveFixed(server, '/llms.txt', {
    type: 'text/plain',
    policy: POLICY,
    body: renderLlmsIndex(menu, guides, config.publicUrl),
  });
  for (const guide of guides) serveGuide(server, guide, { menu, packages, config });
}

/** Serves a guide as a page, and as Markdown at the same path with `.md`. */
function serveGuide(
  server: FastifyInstance,
  guide: Guide,
  { menu, packages, config }: { menu: Menu; packages: ClientPackage[]; config: Config },
): void {
  const html = guide.html
    .replace('<!-- codes -->', renderErrorCodes)
    .replace('<!-- clients -->', () => renderClientPackages(packages));
  const renderPage = (now: Date) => ({
    type: 'text/html',
    policy: POLICY,
    body: renderGuide(
      { ...guide, html: html.replace('<!-- state -->', () => renderVersionState(config, now)) },
      menu,
      config,
    ),
  });
  const renderMarkdown = (now: Date) => ({
    type: 'text/markdown',
    policy: POLICY,
    body: renderMarkdownPage(guide, { packages, config, now }),
  });
  for (const [path, render] of [
    [guide.path, renderPage],
    [`${guide.path}.md`, renderMarkdown],
  ] as const) {
    if (guide.path === VERSION_POLICY) serveChanging(server, path, () => render(new Date()));
    else serveFixed(server, path, render(new Date()));
  }
}

function renderGuide(guide: Guide, menu: Menu, config: Config): string {
  const root = getRootPath(config);
  const order = menu.flatMap(({ links }) => links);
  const place = order.findIndex(({ path }) => path === guide.path);
  const isHome = guide.path === HOME;
  const html = guide.html.replaceAll('%ROOT%', root).replaceAll('%ADDRESS%', config.publicUrl);
  return layout(
    {
      title: isHome ? 'Inkpad for developers' : `${guide.title} · Inkpad`,
      summary: guide.summary,
      at: guide.path,
      icon: ICON.path,
      style: STYLE.path,
      scripts: [SCRIPT.path],
      menu,
      headings: isHome ? [] : guide.headings.filter(({ depth }) => depth === 2),
      previous: order[place - 1] ?? null,
      next: isHome ? null : (order[place + 1] ?? null),
      html,
    },
    createPlainFrame(root, 'en'),
  );
}

/** Serves Scalar from data/scalar.js.br, whose origin is in scripts/scalar.mjs. */
function serveReference(
  server: FastifyInstance,
  { root, menu, document }: { root: string; menu: Menu; document: OpenApiDocument },
): void {
  const policy = REFERENCE_POLICY;
  const reference = JSON.stringify(createReferenceDocument(document, root));
  serveFixed(server, `${REFERENCE}/openapi.json`, {
    type: 'application/json',
    policy,
    body: reference,
  });
  serveCompressedFile(server, `${REFERENCE}/scalar.js`, {
    type: 'text/javascript',
    policy,
    file: getPackageFileUrl('data/scalar.js.br'),
  });
  const body = layout(
    {
      title: 'Reference · Inkpad',
      summary: 'Every operation of the API, with samples in curl, TypeScript and Python.',
      at: REFERENCE,
      icon: ICON.path,
      style: STYLE.path,
      scripts: [SCRIPT.path, `${REFERENCE}/scalar.js`, REFERENCE_SCRIPT.path],
      menu,
      headings: [],
      previous: null,
      next: null,
      html: '',
    },
    createPlainFrame(root, 'en'),
  );
  serveFixed(server, REFERENCE, { type: 'text/html', policy, body });
}
