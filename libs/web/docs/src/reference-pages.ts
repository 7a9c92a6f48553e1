import type { FastifyInstance } from 'fastify';
import type { Config } from '#configuration/config.js';
import { getPackageFileUrl } from '#kernel/package-file.js';
import { loadAsset } from '#pages/assets.js';
import { getRootPath } from '#pages/page.js';
import { createPlainFrame, loadView } from '#pages/view.js';
import { POLICY, renderDocsPage, SCALAR_POLICY } from './docs-layout.js';
import { serveCompressedFile, serveFixed } from './fixed-text.js';
import { REFERENCE } from './guides.js';
import type { OpenApiDocument } from './openapi-document.js';
import type { OperationGroup } from './operations.js';
import { highlightSample, renderDescription } from './sample-html.js';

const SCALAR_SCRIPT = loadAsset(import.meta.url, './assets/reference.js');
const SCALAR = `${REFERENCE}/try`;

const operations = loadView<{
  groups: readonly OperationGroup[];
  events: string[];
  address: string;
  highlight: typeof highlightSample;
  renderDescription: typeof renderDescription;
}>(import.meta.url, './views/operations.eta');

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
  serveFixed(server, REFERENCE, () => ({
    type: 'text/html',
    policy: POLICY,
    body: renderReference(getSource()),
  }));
  serveScalar(server, root);
}

function renderReference({ reference, groups, config }: ReferenceSource): string {
  const root = getRootPath(config);
  const html = operations(
    {
      groups,
      events: Object.keys(reference['webhooks'] as object),
      address: config.publicUrl,
      highlight: highlightSample,
      renderDescription,
    },
    createPlainFrame(root, 'en'),
  );
  const menu = groups.map(({ name, operations: links }) => ({
    title: name,
    links: links.map(({ anchor, summary, method, path }) => ({
      path: `${REFERENCE}#${anchor}`,
      name: summary,
      about: `${method} ${path}`,
    })),
  }));
  return renderDocsPage(root, {
    title: 'Reference · Inkpad',
    summary: 'Every operation of the API, with samples in curl, TypeScript and Python.',
    at: REFERENCE,
    kind: 'reference',
    menu,
    html,
  });
}

/** Serves Scalar from data/scalar.js.br, whose origin is in scripts/scalar.mjs. It is a page of its own because it is large. */
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
