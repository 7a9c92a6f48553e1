import { randomBytes } from 'node:crypto';
import { readTextFile } from '#platform/kernel/templates.js';
import { FORGET_PERSON, loadAsset, NETWORK_IN_TIME, STYLE, type Asset } from '#web/pages/assets.js';
import {
  hashStyle,
  renderBody,
  renderColorStyle,
  renderTitle,
  type Colors,
  type RenderedPage,
} from '#web/pages/page.js';
import { loadView, type PageFrame, type View } from '#web/pages/view.js';

/** How a page looks: the scanner fills the screen, a card page has the colours of the card. */
export type CounterLook = 'scanner' | 'card' | 'plain';

type Layout = {
  title: string;
  body: string;
  look: CounterLook;
  styles: string[];
  scripts: string[];
  nonce: string;
  /** A style sheet with the colours of a card, or nothing. */
  colors: string;
  /** The path of the counter, or nothing where there is none to go back to. */
  back: string;
  config: string;
};

export type CounterPage<D extends object> = {
  title: string;
  view: View<D>;
  data: D;
  look?: CounterLook;
  colors?: Colors | undefined;
  back?: string;
  scripts?: readonly Asset[];
  /** What the script of the scanner needs. */
  config?: object;
};

const layout = loadView<Layout>(import.meta.url, './views/layout.eta');
const CSS = loadAsset(import.meta.url, './assets/counter.css');
const PROGRESS = loadAsset(import.meta.url, './assets/counter-progress.js');
export const SCANNER_SCRIPTS: readonly Asset[] = [
  FORGET_PERSON,
  loadAsset(import.meta.url, './assets/counter-queue.js'),
  loadAsset(import.meta.url, './assets/counter-camera.js'),
  loadAsset(import.meta.url, './assets/counter-view.js'),
  loadAsset(import.meta.url, './assets/counter-screen.js'),
  loadAsset(import.meta.url, './assets/counter-codes.js'),
  loadAsset(import.meta.url, './assets/counter.js'),
];
export const PEOPLE_SCRIPTS: readonly Asset[] = [
  loadAsset(import.meta.url, './assets/counter-people.js'),
];
/** Runs on a path of the counter, so it is no asset. */
export const WORKER_SCRIPT =
  FORGET_PERSON.text + NETWORK_IN_TIME + readTextFile(import.meta.url, './assets/worker.js');

/** The files without which a page does not work offline. */
export const SHELL_PATHS = [STYLE, CSS, PROGRESS, ...SCANNER_SCRIPTS].map(({ path }) => path);

/**
 * Renders a page of the counter. The scanner may compile WebAssembly, with which it reads barcodes where the browser cannot.
 */
export function renderCounterPage<D extends object>(
  { title, view, data, look = 'plain', colors, back = '', scripts = [], config }: CounterPage<D>,
  frame: PageFrame,
): RenderedPage {
  const style = colors ? renderColorStyle('card', colors) : '';
  const isScanner = look === 'scanner';
  const nonce = randomBytes(16).toString('base64');
  const body = renderBody(view, data, frame);
  const html = layout(
    {
      title: renderTitle(title, frame),
      body,
      look,
      styles: [STYLE.path, CSS.path],
      scripts: [PROGRESS, ...scripts].map(({ path }) => path),
      nonce,
      colors: style,
      back,
      config: config ? escapeJson(config) : '',
    },
    frame,
  );
  const policy = [
    "default-src 'none'",
    `style-src 'self'${style ? ` ${hashStyle(style)}` : ''}`,
    "img-src 'self' data:",
    "manifest-src 'self'",
    "form-action 'self'",
    "base-uri 'none'",
    "frame-ancestors 'none'",
    ...(isScanner
      ? [
          `script-src 'nonce-${nonce}' 'wasm-unsafe-eval'`,
          "connect-src 'self'",
          "worker-src 'self'",
          "media-src 'self' blob:",
        ]
      : [`script-src 'nonce-${nonce}'`]),
  ].join('; ');
  return { html, policy };
}

/** Renders JSON for a script element, which no text in it can end. */
function escapeJson(value: object): string {
  return JSON.stringify(value).replaceAll('<', String.raw`\u003c`);
}

/** Creates the web app manifest, with which phones install the counter. */
export function createCounterManifest(name: string, lang: string, root: string) {
  const path = `${root}/counter`;
  const icon = { src: `${path}/icon.svg`, type: 'image/svg+xml', sizes: 'any' };
  return {
    id: path,
    name: `Inkpad · ${name}`,
    short_name: name,
    lang,
    start_url: path,
    scope: path,
    display: 'standalone',
    background_color: '#131218',
    theme_color: '#131218',
    icons: [
      { ...icon, purpose: 'any' },
      { ...icon, purpose: 'maskable' },
    ],
  };
}
