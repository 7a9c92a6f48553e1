import type { FastifyInstance } from 'fastify';
import type { Config } from '#configuration/config.js';
import { getPackageFileUrl } from '#platform/kernel/package-file.js';
import { loadAsset } from '#web/pages/assets.js';
import { getRootPath } from '#web/pages/page.js';
import { createPlainFrame, loadView } from '#web/pages/view.js';
import { POLICY, renderDocsPage, SCALAR_POLICY } from './docs-layout.js';
import { serveCompressedFile, serveFixed } from './fixed-text.js';
import { ADMIN_REFERENCE, REFERENCE } from './guides.js';
import { renderReferenceMarkdown } from './markdown-pages.js';
import type { OpenApiDocument } from './openapi-document.js';
import { listOperationGroups, type OperationGroup } from './operations.js';
import { createReferenceDocument } from './reference.js';
import { highlightSample, renderDescription } from './sample-html.js';

const SCALAR_SCRIPT = loadAsset(import.meta.url, './assets/reference.js');
const SCALAR = `${REFERENCE}/try`;

const operations = loadView<{
  groups: readonly OperationGroup[];
  address: string;
  text: ReferenceText;
  highlight: typeof highlightSample;
  renderDescription: typeof renderDescription;
}>(import.meta.url, './views/operations.eta');

/** @property isTriable whether the page of Scalar has the operations */
type ReferenceText = {
  title: string;
  summary: string;
  variable: string;
  prefix: string;
  isTriable: boolean;
};

const TEXT: ReferenceText = {
  title: 'Reference',
  summary:
    'Every operation of the API, with its fields, and samples in curl, TypeScript and Python.',
  variable: 'INKPAD_TOKEN',
  prefix: 'ink_',
  isTriable: true,
};

const ADMIN_TEXT: ReferenceText = {
  title: 'Admin API',
  summary:
    'Every operation that provisions stores, users and API tokens, with its fields, and samples in curl.',
  variable: 'INKPAD_ADMIN_TOKEN',
  prefix: 'inkadm_',
  isTriable: false,
};

type ReferenceSource = {
  reference: OpenApiDocument;
  groups: readonly OperationGroup[];
  config: Config;
};

/** Serves the reference, which is read without a script, and a page on which its operations can be tried. */
export function serveReference(
  server: FastifyInstance,
  getSource: () => ReferenceSource,
  root: string,
): void {
  serveFixed(server, `${REFERENCE}/openapi.json`, () => ({
    type: 'application/json',
    policy: SCALAR_POLICY,
    body: JSON.stringify(getSource().reference),
  }));
  serveOperations(server, root, REFERENCE, () => {
    const { groups, config } = getSource();
    return { text: TEXT, groups, config };
  });
  serveScalar(server, root);
}

/** Serves the reference of the admin API. Its tokens are not for browsers, so there is no page to try it. */
export function serveAdminReference(
  server: FastifyInstance,
  getDocument: () => OpenApiDocument,
  config: Config,
): void {
  const root = getRootPath(config);
  serveOperations(server, root, ADMIN_REFERENCE, () => {
    const groups = listOperationGroups(createReferenceDocument(getDocument(), root));
    return { text: ADMIN_TEXT, groups, config };
  });
}

type OperationsPage = {
  text: ReferenceText;
  groups: readonly OperationGroup[];
  config: Config;
};

/** Serves a page of operations. @param at its path */
function serveOperations(
  server: FastifyInstance,
  root: string,
  at: string,
  getPage: () => OperationsPage,
): void {
  serveFixed(server, at, () => ({
    type: 'text/html',
    policy: POLICY,
    body: renderOperations(root, at, getPage()),
  }));
  serveFixed(server, `${at}.md`, () => {
    const { text, groups } = getPage();
    return {
      type: 'text/markdown',
      policy: POLICY,
      body: renderReferenceMarkdown(text.title, groups),
    };
  });
}

function renderOperations(
  root: string,
  at: string,
  { text, groups, config }: OperationsPage,
): string {
  const html = operations(
    {
      groups,
      text,
      address: config.publicUrl,
      highlight: highlightSample,
      renderDescription,
    },
    createPlainFrame(root, 'en'),
  );
  const menu = groups.map(({ name, operations: links }) => ({
    title: name,
    links: links.map(({ anchor, summary, method, path }) => ({
      path: `${at}#${anchor}`,
      name: summary,
      about: `${method} ${path}`,
    })),
  }));
  return renderDocsPage(root, {
    title: `${text.title} · Inkpad`,
    summary: text.summary,
    at,
    kind: 'reference',
    menu,
    html,
  });
}

/** Serves Scalar from data/scalar.js.br, whose origin is in tools/generate/scalar.mjs. It is a page of its own because it is large. */
function serveScalar(server: FastifyInstance, root: string): void {
  const script = `${SCALAR}/scalar.js`;
  serveCompressedFile(server, script, {
    type: 'text/javascript',
    policy: SCALAR_POLICY,
    file: getPackageFileUrl('data/scalar.js.br'),
  });
  const renderPage = () =>
    renderDocsPage(root, {
      title: 'Try the operations · Inkpad',
      summary: 'Send requests of every operation from the browser.',
      at: SCALAR,
      kind: 'scalar',
      html: '',
      scripts: [script, SCALAR_SCRIPT.path],
    });
  serveFixed(server, SCALAR, () => ({
    type: 'text/html',
    policy: SCALAR_POLICY,
    body: renderPage(),
  }));
}
