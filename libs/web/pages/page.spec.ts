import { describe, expect, it } from '@jest/globals';
import { renderPage } from './page.js';
import { createPlainFrame, loadView, type PageFrame } from './view.js';

const HOSTILE = `"><script>alert('&')</script>`;
const ESCAPED = '&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;';

const view = loadView<{
  status: number;
  title: string;
  text: string;
  link: null;
  number: string | null;
}>(import.meta.url, './views/error.eta');
const page = {
  kind: 'public' as const,
  title: HOSTILE,
  view,
  data: { status: 404, title: HOSTILE, text: 'Gone', link: null, number: null },
  frame: createPlainFrame('/loyalty', 'de'),
};

describe('renderPage', () => {
  it('escapes the data, and shows nothing for missing values', () => {
    const { html } = renderPage(page);
    expect(html).toContain(`<title>${ESCAPED}</title>`);
    expect(html).toContain(`<h1>${ESCAPED}</h1>`);
    expect(html).not.toContain('<script');
    expect(html).not.toMatch(/undefined|null/);
    expect(html).toContain('<html lang="de">');
    expect(html).toMatch(/href="\/loyalty\/assets\/inkpad-[\w-]{12}\.css"/);
  });

  it('lists the errors of a form where its part stands, and their number in the title', () => {
    const frame = createPlainFrame('', 'de');
    const form = (_: object, { parts }: PageFrame) => {
      parts.addErrors(null);
      parts.addFieldErrors('field-other', 'Other', null);
      parts.addErrors('Bitte prüfen.');
      parts.addFieldErrors('field-name', HOSTILE, ['Bitte mindestens 10 Zeichen verwenden.']);
      return '<h1>Form</h1>\n<!--errors-->\n<form></form>';
    };
    const { html } = renderPage({ ...page, title: 'Form', view: form, data: {}, frame });
    expect(html).toContain('<title>2 Fehler · Form</title>');
    expect(html).toMatch(/<h1>Form<\/h1>\s+<div class="banner bad[^>]+autofocus>[^]+<form>/);
    expect(html).toContain(
      `<a href="#field-name">${ESCAPED}: Bitte mindestens 10 Zeichen verwenden.</a>`,
    );
    expect(html).toContain('<p>Bitte prüfen.</p>');
  });

  it('lists the errors of a refused form that no field of it shows', () => {
    const frame = createPlainFrame('', 'en');
    const fields = {
      name: ['Please fill in this field.'],
      locale: ['This language is not offered.'],
    };
    frame.parts.addRejection({ fields, text: 'Please check' });
    const form = (_: object, { parts }: PageFrame) => {
      expect(parts.has('name')).toBe(true);
      parts.addFieldErrors('field-name', 'Name', parts.take('name'));
      // A field of another form, with the same name.
      expect(parts.take('name')).toEqual([]);
      return '<form></form>';
    };
    const { html } = renderPage({ ...page, view: form, data: {}, frame });
    expect(html).toContain('<a href="#field-name">Name: ');
    expect(html).toContain('This language is not offered.');
    expect(html).toContain('<title>3 errors · ');
  });

  it('lists the errors at the beginning of a page that has no place for them', () => {
    const frame = createPlainFrame('', 'en');
    const form = (_: object, { parts }: PageFrame) => {
      parts.addFieldErrors('field-name', 'Name', ['is required']);
      return '<form></form>';
    };
    const { html } = renderPage({ ...page, view: form, data: {}, frame });
    expect(html).toMatch(/<main[^>]*>\s+<div class="banner bad[^]+Please check 1 field[^]+<form>/);
  });

  it('returns a policy that allows only what the page declares', () => {
    expect(renderPage(page).policy).toBe(
      "default-src 'none'; style-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    );
    const allow = { 'img-src': ['https://tiles.example'], 'connect-src': ["'self'"] };
    const { policy } = renderPage({ ...page, allow });
    expect(policy).toContain("img-src 'self' data: https://tiles.example;");
    expect(policy).toContain("connect-src 'self'");
    expect(policy).not.toContain('script-src');
  });

  it('allows the scripts of the page by a nonce, which changes with each response', () => {
    const script = { name: 'a.js', path: '/assets/a-123456789012.js', type: '', text: '' };
    const nonces = [1, 2].map(() => {
      const { html, policy } = renderPage({ ...page, scripts: [script] });
      const [, nonce = ''] = /nonce="([^"]+)"/.exec(html) ?? [];
      expect(policy).toContain(`script-src 'nonce-${nonce}'`);
      expect(html).toContain('src="/loyalty/assets/a-123456789012.js"');
      return nonce;
    });
    expect(nonces[0]).toMatch(/^[\w+/]{22}==$/);
    expect(nonces[1]).not.toBe(nonces[0]);
  });

  it('shows the colours of a store with readable text, and refuses invalid ones', () => {
    const colors = { ground: '#FFE0B2', text: '#FFF3E0' };
    const { html, policy } = renderPage({ ...page, colors });
    expect(html).toContain('<style>:root{--brand:#FFE0B2;--on-brand:#000000}</style>');
    expect(policy).toMatch(/style-src 'self' 'sha256-[\w+/]+='/);
    const bad = { ground: 'red}', text: '#FFF3E0' };
    expect(() => renderPage({ ...page, colors: bad })).toThrow('not #RRGGBB');
  });
});
