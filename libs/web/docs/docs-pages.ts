import type { FastifyInstance } from 'fastify';
import { readdirSync, readFileSync } from 'node:fs';
import { getPackageFileUrl } from '#platform/kernel/package-file.js';
import { getNow } from '#platform/kernel/clock.js';
import type { Config } from '#configuration/config.js';
import { ADMIN_DOCUMENT } from '#platform/http/path.js';
import { VERSION_POLICY } from '#platform/http/versioning.js';
import { getRootPath } from '#web/pages/page.js';
import { readClientPackages, renderClientPackages, type ClientPackage } from './client-packages.js';
import { POLICY, renderDocsPage } from './docs-layout.js';
import { listErrorEntries, renderErrorCodes, renderIssueCodes } from './error-codes.js';
import { serveChanging, serveDownload, serveFixed } from './fixed-text.js';
import { HOME, getMenu, readGuides, type Guide, type Menu } from './guides.js';
import { renderLlmsIndex, renderMarkdownPage } from './markdown-pages.js';
import { readOpenApiDocument } from './openapi-document.js';
import { listOperationGroups } from './operations.js';
import { createPostmanCollection, POSTMAN } from './postman.js';
import { createReferenceDocument } from './reference.js';
import { serveAdminReference, serveReference } from './reference-pages.js';
import { createSearchIndex } from './search-index.js';
import { listSettings, renderSettings } from './settings-list.js';
import { renderVersionState } from './version-state.js';

const PICTURES = getPackageFileUrl('dist/docs/pictures/');

/** Files that the search finds. */
const FILES = [
  {
    title: 'OpenAPI document',
    about: 'openapi.json: generate a client for C#, Java, Go, PHP and others',
    path: '/openapi.json',
  },
  {
    title: 'OpenAPI document of the admin API',
    about: 'openapi-admin.json: provision stores, users and tokens',
    path: ADMIN_DOCUMENT,
  },
  {
    title: 'Postman collection',
    about: 'Every operation with an example, to import into Postman',
    path: POSTMAN,
  },
  {
    title: 'llms.txt',
    about: 'All guides as Markdown, for language models and agents',
    path: '/llms.txt',
  },
];

/** Serves /openapi.json, the guides and the reference. They do not change while the process runs. */
export function serveDocs(server: FastifyInstance, config: Config): void {
  const getDocument = once(() => readOpenApiDocument(config.publicUrl));
  const getSource = once(() => {
    const reference = createReferenceDocument(getDocument(), getRootPath(config));
    return { reference, groups: listOperationGroups(reference), config };
  });
  const { guides, receivers } = readGuides();
  const menu = getMenu(guides);
  const json = (createValue: () => unknown) => () => ({
    type: 'application/json',
    policy: POLICY,
    body: JSON.stringify(createValue()),
  });
  serveFixed(server, '/openapi.json', json(getDocument));
  serveFixed(
    server,
    POSTMAN,
    json(() => createPostmanCollection(getDocument(), config.publicUrl)),
  );
  serveFixed(
    server,
    '/docs/search.json',
    json(() => {
      const { groups } = getSource();
      const errors = listErrorEntries();
      const settings = listSettings();
      return createSearchIndex({ guides, menu, groups, errors, settings, files: FILES });
    }),
  );
  serveReference(server, getSource, getRootPath(config));
  const getAdminDocument = once(() => readOpenApiDocument(config.publicUrl, 'openapi-admin.json'));
  serveFixed(server, ADMIN_DOCUMENT, json(getAdminDocument));
  serveAdminReference(server, getAdminDocument, config);
  const packages = readClientPackages();
  for (const { path, ...file } of packages)
    serveDownload(server, path, { ...file, policy: POLICY });
  const plain = { type: 'text/plain; charset=utf-8', policy: POLICY };
  for (const { path, name, text } of receivers)
    serveDownload(server, path, { ...plain, name, body: text });
  for (const name of readdirSync(PICTURES)) {
    const body = readFileSync(new URL(name, PICTURES));
    serveDownload(server, `/docs/pictures/${name}`, { type: 'image/png', policy: POLICY, body });
  }
  serveFixed(server, '/llms.txt', () => ({
    type: 'text/plain',
    policy: POLICY,
    body: renderLlmsIndex(menu, guides, config.publicUrl),
  }));
  for (const guide of guides) serveGuide(server, guide, { menu, packages, config });
}

/** Returns a function that creates a value at its first call. */
function once<T>(create: () => T): () => T {
  let created: { value: T } | undefined;
  return () => (created ??= { value: create() }).value;
}

/** Serves a guide as a page, and as Markdown at the same path with `.md`. */
function serveGuide(
  server: FastifyInstance,
  guide: Guide,
  { menu, packages, config }: { menu: Menu; packages: ClientPackage[]; config: Config },
): void {
  const getHtml = once(() =>
    guide.html
      .replace('<!-- codes -->', renderErrorCodes)
      .replace('<!-- issues -->', renderIssueCodes)
      .replace('<!-- settings -->', renderSettings)
      .replace('<!-- clients -->', () => renderClientPackages(packages)),
  );
  const renderPage = (now: Date) => ({
    type: 'text/html',
    policy: POLICY,
    body: renderGuide(
      {
        ...guide,
        html: getHtml().replace('<!-- state -->', () => renderVersionState(config, now)),
      },
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
    if (guide.path === VERSION_POLICY) serveChanging(server, path, () => render(getNow()));
    else serveFixed(server, path, () => render(getNow()));
  }
}

function renderGuide(guide: Guide, menu: Menu, config: Config): string {
  const root = getRootPath(config);
  const order = menu.flatMap(({ links }) => links);
  const place = order.findIndex(({ path }) => path === guide.path);
  const isHome = guide.path === HOME;
  const html = guide.html.replaceAll('%ROOT%', root).replaceAll('%ADDRESS%', config.publicUrl);
  return renderDocsPage(root, {
    title: isHome ? 'Inkpad for developers' : `${guide.title} · Inkpad`,
    summary: guide.summary,
    at: guide.path,
    kind: 'guide',
    menu,
    headings: isHome ? [] : guide.headings.filter(({ depth }) => depth === 2),
    previous: order[place - 1] ?? null,
    next: isHome ? null : (order[place + 1] ?? null),
    html,
  });
}
