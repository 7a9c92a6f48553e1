import type { FastifyInstance } from 'fastify';
import type { Config } from '#kernel/config.js';
import { packageFile } from '#kernel/package-file.js';
import { VERSION_POLICY } from '#http/versioning.js';
import { assetOf, ICON } from '#pages/assets.js';
import { rootOf } from '#pages/page.js';
import { createPlainFrame } from '#pages/page-frame.js';
import { viewOf } from '#pages/view.js';
import { errorCodes } from './error-codes.js';
import { serveChanging, serveCompressedFile, serveFixed } from './fixed-text.js';
import { HOME, menuOf, readGuides, type Guide, type Menu, type MenuLink } from './guides.js';
import { readOpenApiDocument, type OpenApiDocument } from './openapi-document.js';
import { referenceDocument } from './reference.js';
import { searchIndex } from './search-index.js';
import { versionState } from './version-state.js';

const STYLE = assetOf(import.meta.url, './assets/docs.css');
const SCRIPT = assetOf(import.meta.url, './assets/docs.js');
const REFERENCE_SCRIPT = assetOf(import.meta.url, './assets/reference.js');
const REFERENCE = '/docs/reference';

const layout = viewOf<{
  title: string;
  summary: string;
  at: string;
  icon: string;
  style: string;
  scripts: string[];
  menu: Menu;
  headings: Guide['headings'];
  /** The next and the previous guide, in the order of the menu. */
  before: MenuLink | null;
  after: MenuLink | null;
  html: string;
}>(import.meta.url, './views/docs.eta');

/** Everything from our own server. Scalar writes styles into the page, and nothing else that a policy would notice. */
const policyOf = (style: string) =>
  `default-src 'none'; script-src 'self'; style-src ${style}; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;
const POLICY = policyOf("'self'");
const REFERENCE_POLICY = policyOf("'self' 'unsafe-inline'");

/** /openapi.json for programs; the guides and the reference for people. All of it stays as it is while the process runs. */
export function serveDocs(server: FastifyInstance, config: Config): void {
  const document = readOpenApiDocument(config.publicUrl);
  const root = rootOf(config);
  const guides = readGuides();
  const menu = menuOf(guides);
  const json = (value: unknown) => ({
    type: 'application/json',
    policy: POLICY,
    body: JSON.stringify(value),
  });
  serveFixed(server, '/openapi.json', json(document));
  serveFixed(server, '/docs/search.json', json(searchIndex(guides, document)));
  serveReference(server, { root, menu, document });
  for (const guide of guides) {
    const page = (filled: string) => ({
      type: 'text/html',
      policy: POLICY,
      body: drawGuide({ ...guide, html: filled }, menu, config),
    });
    const html = guide.html.replace('<!-- codes -->', errorCodes);
    if (guide.path !== VERSION_POLICY) serveFixed(server, guide.path, page(html));
    else {
      serveChanging(server, guide.path, () =>
        page(html.replace('<!-- state -->', versionState(config, new Date()))),
      );
    }
  }
}

function drawGuide(guide: Guide, menu: Menu, config: Config): string {
  const root = rootOf(config);
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
      before: order[place - 1] ?? null,
      after: isHome ? null : (order[place + 1] ?? null),
      html,
    },
    createPlainFrame(root, 'en'),
  );
}

/** Scalar, from data/scalar.js.br: scripts/scalar.mjs says where that is from. */
function serveReference(
  server: FastifyInstance,
  { root, menu, document }: { root: string; menu: Menu; document: OpenApiDocument },
): void {
  const policy = REFERENCE_POLICY;
  const shown = JSON.stringify(referenceDocument(document, root));
  serveFixed(server, `${REFERENCE}/openapi.json`, {
    type: 'application/json',
    policy,
    body: shown,
  });
  serveCompressedFile(server, `${REFERENCE}/scalar.js`, {
    type: 'text/javascript',
    policy,
    file: packageFile('data/scalar.js.br'),
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
      before: null,
      after: null,
      html: '',
    },
    createPlainFrame(root, 'en'),
  );
  serveFixed(server, REFERENCE, { type: 'text/html', policy, body });
}
