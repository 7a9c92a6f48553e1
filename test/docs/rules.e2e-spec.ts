import { beforeAll, describe, expect, it } from '@jest/globals';
import { readdirSync, readFileSync } from 'node:fs';
import { useService } from '../support/http/contract.js';
import { Client } from '../support/services/service.js';

type Json = Record<string, unknown>;
type Operation = {
  operationId: string;
  summary: string;
  responses: Record<string, { headers?: Json }>;
  'x-codeSamples': { label: string; source: string }[];
};
type Document = {
  paths: Record<string, Record<string, Operation>>;
  servers: { url: string }[];
  components: { responses: Record<string, { headers?: Json }> };
};
type Entry = { title: string; about: string; path: string; names: string; text: string };

const ROOT = '/stamps';
const PUBLIC_URL = `https://cards.example${ROOT}`;
const GUIDES = [
  'first-stamp',
  'authentication',
  'errors',
  'retries',
  'limits',
  'versioning',
  'webhooks',
  'webhooks-in-detail',
  'automation',
  'settings',
  'rules',
  'clients/typescript',
  'clients/python',
  'changelog',
];

const service = useService({ PUBLIC_URL });
let stranger: Client;
let document: Document;
let reference: Document;
const pages = new Map<string, string>();

beforeAll(async () => {
  stranger = new Client(service.running.baseUrl, 0, null);
  document = (await stranger.get<Document>('/openapi.json')).body;
  reference = (await stranger.get<Document>('/docs/reference/openapi.json')).body;
  for (const path of ['', ...GUIDES.map((name) => `/${name}`), '/reference', '/reference/try']) {
    const page = await stranger.get(`/docs${path}`);
    if (page.status !== 200) throw new Error(`/docs${path} is ${page.status}`);
    pages.set(`/docs${path}`, page.text);
  }
});

function operationsOf({ paths }: Document): Operation[] {
  return Object.values(paths).flatMap((methods) => Object.values(methods));
}

/** The commands of /docs that install something, as text. */
function listCommands(): string[] {
  const commands = pages.get('/docs')?.matchAll(/<code>((?:npm|pip) install .*?)<\/code>/g) ?? [];
  return [...commands].map(([, html = '']) => html.replaceAll(/<[^>]*>/g, ''));
}

/** Without the root, which a proxy takes off. */
async function expectThere(path: string): Promise<void> {
  const [page = '', hash] = path.split('#');
  const text = pages.get(page) ?? (await stranger.get(page)).text;
  expect([page, pages.has(page) || (await stranger.get(page)).status < 400]).toEqual([page, true]);
  // Scalar draws its page in the browser.
  if (hash === undefined || page === '/docs/reference/try') return;
  expect([path, text.includes(`id="${hash}"`)]).toEqual([path, true]);
}

describe('the documentation', () => {
  it('DOCS-01 `/docs` leads to every guide and to the reference', () => {
    for (const path of [...GUIDES, 'reference']) {
      expect(pages.get('/docs')).toContain(`href="${ROOT}/docs/${path}"`);
    }
  });

  it('DOCS-02 What the pages of `/docs` link to within the service is there, down to the place on the page', async () => {
    const links = [...pages].flatMap(([page, text]) =>
      [...text.matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, href = '']) =>
        href.startsWith('#') ? ROOT + page + href : href,
      ),
    );
    const own = new Set(links.filter((link) => !/^https?:/.test(link)));
    expect(own.size).toBeGreaterThan(50);
    for (const link of own) {
      expect([link, link.startsWith(`${ROOT}/`)]).toEqual([link, true]);
      const path = link.slice(ROOT.length);
      // The console asks a stranger to sign in.
      if (path !== '/app') await expectThere(path);
    }
  });

  it('DOCS-03 Guides show the public URL of the service in the place of an example', () => {
    expect(pages.get('/docs/first-stamp')).toContain('>https://cards.example/stamps</span>');
    for (const [page, text] of pages) {
      expect([page, /localhost:3000|%ROOT%|%ADDRESS%|<!-- \w/.test(text)]).toEqual([page, false]);
    }
  });

  it('DOCS-04 Each operation has samples in curl, TypeScript and Python', () => {
    for (const { operationId, 'x-codeSamples': samples } of operationsOf(document)) {
      const labels = samples.map(({ label }) => label);
      expect([operationId, ...labels]).toEqual([operationId, 'curl', 'TypeScript', 'Python']);
      expect(samples.every(({ source }) => source.length > 20)).toBe(true);
    }
    expect(operationsOf(reference).map((operation) => operation['x-codeSamples'])).toEqual(
      operationsOf(document).map((operation) => operation['x-codeSamples']),
    );
  });

  it('DOCS-05 The reference leaves out what every response has; `/openapi.json` has all of it', () => {
    const everywhere = ['X-Request-Id', 'RateLimit-Limit', 'Deprecation', 'Sunset', 'Link'];
    const namesOf = (document: Document) =>
      operationsOf(document)
        .flatMap(({ responses }) => Object.values(responses))
        .concat(Object.values(document.components.responses))
        .flatMap(({ headers }) => Object.keys(headers ?? {}));
    expect(namesOf(document)).toEqual(expect.arrayContaining(everywhere));
    expect(namesOf(reference).filter((name) => everywhere.includes(name))).toEqual([]);
    expect(namesOf(reference)).toEqual(expect.arrayContaining(['Retry-After', 'X-Dry-Run']));
    expect(operationsOf(reference).map(({ operationId }) => operationId)).toEqual(
      operationsOf(document).map(({ operationId }) => operationId),
    );
  });

  it('DOCS-06 Requests from the reference go to the host that it was loaded from', () => {
    expect(reference.servers).toEqual([{ url: ROOT }]);
    expect(document.servers).toEqual([{ url: `https://cards.example${ROOT}` }]);
  });

  it('DOCS-07 The search knows every part of every guide, and every operation', async () => {
    const { body } = await stranger.get<Entry[]>('/docs/search.json');
    for (const { path } of body) await expectThere(path);
    const titles = body.map(({ title }) => title);
    expect(titles).toEqual(
      expect.arrayContaining(operationsOf(document).map((operation) => operation.summary)),
    );
    for (const [page, text] of pages) {
      if (page === '/docs' || page.startsWith('/docs/reference')) continue;
      const places = [...text.matchAll(/<h[23] id="([^"]+)"/g)].map(([, id]) => `${page}#${id}`);
      expect(body.map(({ path }) => path)).toEqual(expect.arrayContaining([page, ...places]));
    }
  });

  it('DOCS-20 `/docs` shows the commands that install the clients for TypeScript and Python from this service', () => {
    const commands = listCommands();
    expect(commands).toEqual([
      expect.stringMatching(
        /^npm install https:\/\/cards\.example\/stamps\/docs\/clients\/inkpad-[\d.]+\.tgz$/,
      ),
      expect.stringMatching(
        /^pip install https:\/\/cards\.example\/stamps\/docs\/clients\/inkpad_client-[\d.]+-py3-none-any\.whl$/,
      ),
    ]);
  });

  it('DOCS-21 The packages of the clients have an `ETag`: sent with `If-None-Match`, one that is still right gets a 304 without a body', async () => {
    const types = ['application/gzip', 'application/zip'];
    for (const [i, command] of listCommands().entries()) {
      const [, path = ''] = command.split(ROOT);
      const url = service.running.baseUrl + path;
      const full = await fetch(url, { headers: { 'accept-encoding': 'gzip, br' } });
      expect([full.status, full.headers.get('content-type')]).toEqual([200, types[i]]);
      expect(full.headers.get('content-encoding')).toBeNull();
      const bytes = await full.arrayBuffer();
      expect(full.headers.get('content-length')).toBe(String(bytes.byteLength));
      expect(bytes.byteLength).toBeGreaterThan(10_000);
      expect(full.headers.get('content-disposition')).toBe(
        `attachment; filename="${path.split('/').at(-1)}"`,
      );
      const etag = full.headers.get('etag') ?? '';
      const same = await fetch(url, { headers: { 'if-none-match': etag } });
      expect([same.status, (await same.arrayBuffer()).byteLength]).toEqual([304, 0]);
      const otherResponse = await fetch(url, {
        method: 'HEAD',
        headers: { 'if-none-match': '"another"' },
      });
      expect([otherResponse.status, otherResponse.headers.get('etag')]).toEqual([200, etag]);
    }
  });

  it('DOCS-22 `/llms.txt` lists every guide with its address as Markdown, in the form of llmstxt.org', async () => {
    const { headers, text } = await stranger.get('/llms.txt');
    expect(headers.get('content-type')).toBe('text/plain; charset=utf-8');
    const [title, , summary, , ...rest] = text.split('\n');
    expect([title, summary]).toEqual(['# Inkpad', expect.stringMatching(/^> \S.{20,}/)]);
    const links = rest.filter((line) => line.startsWith('- '));
    for (const line of links) expect(line).toMatch(/^- \[[^\]]+\]\(https:\S+\): \S/);
    const listed = links.flatMap((line) => /\(([^)]+)\)/.exec(line)?.slice(1) ?? []);
    expect(listed).toEqual(
      expect.arrayContaining(GUIDES.map((name) => `${PUBLIC_URL}/docs/${name}.md`)),
    );
    for (const url of listed) await expectThere(url.replace(PUBLIC_URL, ''));
  });

  it('DOCS-23 Every guide is Markdown at its own path with `.md`, with the public URL and links that work outside of the service', async () => {
    for (const path of ['', ...GUIDES.map((name) => `/${name}`)]) {
      const { status, headers, text } = await stranger.get(`/docs${path}.md`);
      expect([path, status, headers.get('content-type')]).toEqual([
        path,
        200,
        'text/markdown; charset=utf-8',
      ]);
      expect([path, /localhost:3000|%ROOT%|%ADDRESS%|<!-- \w/.test(text)]).toEqual([path, false]);
      const [title = ''] = /^# .+$/m.exec(text) ?? [];
      expect(pages.get(`/docs${path}`)).toContain(`<h1>${title.slice(2)}</h1>`);
      const prose = text.replaceAll(/^```[^]*?^```$/gm, '');
      for (const [, href = ''] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
        expect([path, href]).toEqual([path, expect.stringMatching(/^(https?:\/\/|#)/)]);
        const [own] = href.split('#');
        if (own?.startsWith(PUBLIC_URL)) await expectThere(own.replace(PUBLIC_URL, ''));
      }
    }
    const codes = (await stranger.get('/docs/errors.md')).text;
    expect(codes).toContain('`insufficient_stamps` (422)');
    expect((await stranger.get('/docs.md')).text).toContain(`npm install ${PUBLIC_URL}/docs/`);
  });

  it('DOCS-24 `/docs/rules` has every rule of this document, each with its id as an anchor', () => {
    const rules = readFileSync('docs/api.md', 'utf8').match(/(?<=^ *- \*\*)[A-Z]+-\d+(?=\*\*)/gm);
    expect(rules?.length).toBeGreaterThan(1000);
    const anchors = pages.get('/docs/rules')?.match(/(?<=<li id=")[A-Z]+-\d+(?=")/g);
    expect(anchors).toEqual(rules);
  });

  it('DOCS-25 The whole receivers for webhooks are files to download at `/docs/receivers`', async () => {
    const files = readdirSync('docs/receivers').filter((name) => /\.\w+$/.test(name));
    expect(files.length).toBeGreaterThan(4);
    for (const name of files) {
      const path = `/docs/receivers/${name}`;
      expect(pages.get('/docs/webhooks-in-detail')).toContain(`href="${ROOT}${path}" download`);
      const { headers, text } = await stranger.get(path);
      expect(text).toBe(readFileSync(`docs/receivers/${name}`, 'utf8'));
      expect(headers.get('content-type')).toBe('text/plain; charset=utf-8');
      expect(headers.get('content-disposition')).toBe(`attachment; filename="${name}"`);
    }
  });

  it('DOCS-26 The changelog is at `/docs/changelog`, and the manuals of the clients are at `/docs/clients/typescript` and `/docs/clients/python`', () => {
    const listTitles = (text = '') => text.match(/^#+ .+$/gm) ?? [];
    for (const [path, file] of [
      ['changelog', 'CHANGELOG.md'],
      ['clients/typescript', 'clients/typescript/README.md'],
      ['clients/python', 'clients/python/README.md'],
    ]) {
      const [title = '', ...titles] = listTitles(readFileSync(`${file}`, 'utf8'));
      const page = pages.get(`/docs/${path}`);
      expect(page).toContain(`<h1>${title.slice(2)}</h1>`);
      expect(titles.length).toBeGreaterThan(0);
      for (const title of titles) {
        const isForContributors = title === '## Working on it';
        const text = title.replace(/^#+ /, '').replaceAll('`', '');
        expect([title, page?.replaceAll(/<\/?code>/g, '').includes(`>${text}</a></h`)]).toEqual([
          title,
          !isForContributors,
        ]);
      }
    }
  });

  it('DOCS-27 The search knows error codes, parameters, fields of bodies, every rule, and usual words for what the documentation calls otherwise', async () => {
    const { body } = await stranger.get<Entry[]>('/docs/search.json');
    const find = (title: string) => body.find((entry) => entry.title === title);
    const list = (title: string) => find(title)?.names.split(' ');
    expect(find('insufficient_stamps')?.path).toBe('/docs/errors#insufficient_stamps');
    expect(list('List or search customers')).toEqual(expect.arrayContaining(['phone', 'email']));
    expect(list('Add stamps')).toEqual(
      expect.arrayContaining(['dry_run', 'external_ref', 'Idempotency-Key']),
    );
    expect(find('Add stamps')?.text).toContain('stamps_remaining');
    expect(find('DOCS-27')?.path).toBe('/docs/rules#DOCS-27');
    for (const [words, path] of [
      ['refund void', '/docs/reference#tag/customer-cards/reverseCardEvent'],
      ['sandbox test mode', '/docs/testing#try-without-storing'],
      ['sdk npm', '/docs/clients/typescript'],
      ['sdk pip', '/docs/clients/python'],
      ['csharp c# java', '/openapi.json'],
      ['bulk', '/docs/reference#tag/customer-cards/executeBatch'],
      ['qr', '/docs/reference#tag/customer-cards/getCustomerCardByCode'],
      ['release', '/docs/changelog'],
      ['insomnia', '/docs/postman.json'],
    ] as const) {
      const names = body.find((entry) => entry.path === path)?.names.split(' ');
      expect([path, names]).toEqual([path, expect.arrayContaining(words.split(' '))]);
    }
  });

  it('DOCS-28 `/docs/search.json` is under 150 KB compressed', async () => {
    const url = `${service.running.baseUrl}/docs/search.json`;
    for (const encoding of ['gzip', 'br']) {
      const { headers } = await fetch(url, { headers: { 'accept-encoding': encoding } });
      expect([encoding, headers.get('content-encoding')]).toEqual([encoding, encoding]);
      expect(Number(headers.get('content-length'))).toBeLessThan(150_000);
    }
  });

  it('DOCS-29 `/docs/settings` has every setting with its default, and the search knows each', async () => {
    const { body } = await stranger.get<Entry[]>('/docs/search.json');
    const paths = body.map(({ path }) => path);
    const example = readFileSync('.env.example', 'utf8').split('# Node.js and OpenTelemetry')[0];
    const settings = [...String(example).matchAll(/^#([A-Z]\w+)=(.*)$/gm)];
    expect(settings.length).toBeGreaterThan(80);
    for (const [, name = '', value = ''] of settings) {
      expect(paths).toContain(`/docs/settings#${name}`);
      const start = `<dt id="${name}"><a class="anchor" href="#${name}"><code>${name}</code></a>`;
      const [, part = ''] = pages.get('/docs/settings')?.split(start) ?? [];
      const [text = ''] = part.split('</dt>');
      expect([name, text.replaceAll(/<[^>]*>/g, '').trim()]).toEqual([name, value]);
    }
  });

  it('DOCS-30 The references are Markdown at `/docs/reference.md` and `/docs/admin-reference.md`', async () => {
    const { headers, text } = await stranger.get('/docs/reference.md');
    expect(headers.get('content-type')).toBe('text/markdown; charset=utf-8');
    for (const { summary } of operationsOf(document)) expect(text).toContain(`\n### ${summary}\n`);
    expect(text).toContain('\n### stamp.earned\n');
    expect(text).toContain('- `customer.first_name` (');
    expect(pages.get('/docs/reference')).toContain(`href="${ROOT}/docs/reference.md"`);
    const admin = await stranger.get('/docs/admin-reference.md');
    expect(admin.text).toContain('`POST /api/admin/v1/accounts`');
  });
});
