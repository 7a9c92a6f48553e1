import { createHash, randomBytes } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { Config } from '#configuration/config.js';
import { ACTIONS, ICON, STYLE, type Asset } from './assets.js';
import { pickReadableColor } from './colors.js';
import { findBreadcrumb, groupLinks, type Breadcrumb, type MenuGroup } from './navigation.js';
import { loadView, type PageFrame, type View } from './view.js';

/** Holds two colours as `#RRGGBB`, validated before they were stored. */
export type Colors = { ground: string; text: string };

/** Lists what a page may load or do. Its content security policy forbids everything else. */
export type PageExtras = {
  scripts?: readonly Asset[];
  /** Style sheets besides the one that every page has. */
  styles?: readonly Asset[];
  /** Sources by directive of the content security policy, such as `{ 'connect-src': ["'self'"] }`. */
  allow?: Readonly<Record<string, readonly string[]>>;
  /** How wide the page is: `narrow` for one question, `form` for a longer form. */
  width?: 'narrow' | 'form';
  /** The page above; the default follows from the menu, and null shows none. */
  breadcrumb?: Breadcrumb | null;
  /** The path of the icon; the default is Inkpad's. */
  icon?: string | undefined;
  /** What a link to the page shows in messages and social networks. */
  preview?: LinkPreview;
};

/** @property image with its host */
export type LinkPreview = { title: string; description: string; image: string };

type PageInput<D extends object> = PageExtras & {
  kind: 'console' | 'public';
  title: string;
  view: View<D>;
  data: D;
  frame: PageFrame;
  colors?: Colors | undefined;
  /** The colours of a card on the page. */
  cardColors?: Colors | undefined;
  /** The path of the page, for the menus. */
  at?: string;
};

/** @property policy the content security policy */
export type RenderedPage = { html: string; policy: string; referrerPolicy?: string };

type Layout = Pick<PageInput<object>, 'kind' | 'title'> & {
  body: string;
  icon: string;
  iconType: string;
  preview: LinkPreview | undefined;
  styles: string[];
  /** A style sheet with the colours of a store, or nothing. */
  colors: string;
  scripts: string[];
  nonce: string;
  width: string;
  atHome: boolean;
  breadcrumb: Breadcrumb | null;
  /** The menu of the store, by parts. */
  groups: MenuGroup[];
  /** The title of the menu's entry that the page belongs to. */
  here: string;
  onAccount: boolean;
};

const layout = loadView<Layout>(import.meta.url, './views/layout.eta');
const errorSummary = loadView(import.meta.url, './views/error-summary.eta');
/** Where the part `errors` stands. Escaped values cannot contain it. */
const ERRORS_MARK = '<!--errors-->';

export function renderPage<D extends object>(input: PageInput<D>): RenderedPage {
  const { kind, view, data, frame, styles = [], allow = {}, width = '', at = '' } = input;
  const { breadcrumb = kind === 'console' ? findBreadcrumb(frame, at) : null } = input;
  const body = renderBody(view, data, frame);
  const title = renderTitle(input.title, frame);
  const scripts = [...(frame.parts.hasActions ? [ACTIONS] : []), ...(input.scripts ?? [])];
  const colors = [
    input.colors ? renderColorStyle('brand', input.colors) : '',
    input.cardColors ? renderColorStyle('card', input.cardColors) : '',
  ].join('');
  const nonce = scripts.length > 0 ? randomBytes(16).toString('base64') : '';
  const html = layout(
    {
      kind,
      title: kind === 'console' ? `${title} · Inkpad` : title,
      body,
      icon: input.icon ?? frame.root + ICON.path,
      iconType: input.icon === undefined ? 'image/svg+xml' : 'image/png',
      preview: input.preview,
      styles: [STYLE, ...styles].map(({ path }) => path),
      colors,
      scripts: scripts.map(({ path }) => path),
      nonce,
      width,
      atHome: frame.store !== null && at === `/app/stores/${frame.store.id}`,
      breadcrumb,
      groups: groupLinks(frame.links, frame.t),
      here: frame.links.find(({ current }) => current)?.title ?? '',
      onAccount: at === '/app/account',
    },
    frame,
  );
  return { html, policy: buildContentSecurityPolicy({ colors, nonce, allow }) };
}

/** Renders the inside of a page, with the errors of its form above the form. */
export function renderBody<D extends object>(view: View<D>, data: D, frame: PageFrame): string {
  const html = view(data, frame);
  frame.parts.addPending();
  const errors = frame.parts.errors.length > 0 ? errorSummary({}, frame) : '';
  const [before = '', ...after] = html.split(ERRORS_MARK);
  return after.length === 0 ? errors + html : before + errors + after.join('');
}

/** Begins the title with the number of errors, which a screen reader says first. */
export function renderTitle(title: string, { parts: { errors }, t }: PageFrame): string {
  const { length } = errors;
  if (length === 0) return title;
  return `${t.forms.errorsInTitle({ count: length })} · ${title}`;
}

/**
 * Sets the headers of a page. By default its referrer policy keeps the Origin header of forms, which the guard checks.
 * @returns the body
 */
export function setPageHeaders(
  reply: FastifyReply,
  { html, policy, referrerPolicy = 'same-origin' }: RenderedPage,
): string {
  reply
    .type('text/html; charset=utf-8')
    .header('content-security-policy', policy)
    .header('referrer-policy', referrerPolicy)
    .header('cache-control', 'no-store')
    .header('x-robots-tag', 'noindex, nofollow');
  return html;
}

/** Gets the prefix of every path, where the service shares its host with others. */
export function getRootPath({ publicUrl }: Pick<Config, 'publicUrl'>): string {
  return new URL(publicUrl).pathname.replace(/\/$/, '');
}

const HEX = /^#[0-9A-Fa-f]{6}$/;

/** Renders a style with two custom properties: `--name`, and `--on-name` for text on it, which is always readable. */
export function renderColorStyle(name: string, { ground, text }: Colors): string {
  if (!HEX.test(ground) || !HEX.test(text)) throw new Error('a colour of a page is not #RRGGBB');
  return `:root{--${name}:${ground};--on-${name}:${pickReadableColor(ground, text)}}`;
}

/** Returns the source of a content security policy that allows one inline style. */
export function hashStyle(style: string): string {
  return `'sha256-${createHash('sha256').update(style).digest('base64')}'`;
}

function buildContentSecurityPolicy({
  colors,
  nonce,
  allow,
}: {
  colors: string;
  nonce: string;
  allow: NonNullable<PageExtras['allow']>;
}): string {
  const sources: Record<string, readonly string[]> = {
    'default-src': ["'none'"],
    'style-src': ["'self'", ...(colors ? [hashStyle(colors)] : [])],
    'img-src': ["'self'", 'data:'],
    'form-action': ["'self'"],
    'base-uri': ["'none'"],
    'frame-ancestors': ["'none'"],
    ...(nonce && { 'script-src': [`'nonce-${nonce}'`] }),
  };
  for (const [directive, more] of Object.entries(allow)) {
    sources[directive] = [...(sources[directive] ?? []), ...more];
  }
  return Object.entries(sources)
    .map(([directive, of]) => `${directive} ${of.join(' ')}`)
    .join('; ');
}
