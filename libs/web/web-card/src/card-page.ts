import { computeContrast } from '#kernel/contrast.js';
import { readTextFile } from '#kernel/templates.js';
import type { PassContent } from '#passes/pass-content.js';
import { loadAsset } from '#pages/assets.js';
import { hashStyle, renderColorStyle, type RenderedPage } from '#pages/page.js';
import { createPlainFrame, loadView } from '#pages/view.js';
import { createCardView, type CardViewInput } from './card-view.js';

/** The minimum contrast of shapes (WCAG 2.2, success criterion 1.4.11). */
const MIN_CONTRAST = 3;

type CardPage = ReturnType<typeof createCardView> & { script: string; style: string };

const pageView = loadView<CardPage>(import.meta.url, './views/card.eta');
const iconView = loadView<Record<'ground' | 'circle' | 'mark', string>>(
  import.meta.url,
  './views/icon.eta',
);
const SCRIPT = loadAsset(import.meta.url, './assets/card.js');
const STYLE = readTextFile(import.meta.url, './assets/card.css').replace(/\s+/g, ' ');
/** Runs on the path of a card, so it is no asset. */
export const WORKER_SCRIPT = readTextFile(import.meta.url, './assets/worker.js');

/**
 * Renders the page of a customer card. It is complete without its script, which only keeps it up to date, and its style
 * is inline, allowed by its hash: thus a cached page is complete without another request.
 * @param root the prefix of every path
 */
export function renderCardPage(input: CardViewInput, root: string): RenderedPage {
  const view = createCardView(input);
  const { cardColor, textColor } = input.content.card;
  const style = renderColorStyle('card', { ground: cardColor, text: textColor }) + STYLE;
  return {
    html: pageView({ ...view, script: SCRIPT.path, style }, createPlainFrame(root, view.lang)),
    policy: [
      "default-src 'none'",
      `style-src ${hashStyle(style)}`,
      "script-src 'self'",
      "img-src 'self' data:",
      "connect-src 'self'",
      "manifest-src 'self'",
      "worker-src 'self'",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ].join('; '),
    referrerPolicy: 'no-referrer',
  };
}

/** Renders the icon for the home screen: a stamp, within the circle that launchers cut out. */
export function renderCardIcon({ card, locale }: PassContent, root: string): string {
  const { cardColor, stampColor, stampBackgroundColor } = card;
  const isVisible = computeContrast(stampColor, stampBackgroundColor) >= MIN_CONTRAST;
  return iconView(
    { ground: cardColor, circle: stampBackgroundColor, mark: isVisible ? stampColor : cardColor },
    createPlainFrame(root, locale),
  );
}

/** Creates the web app manifest, with which phones install the card on the home screen. */
export function createCardManifest({ uuid, card, storeName, locale }: PassContent, root: string) {
  const cardPath = `${root}/passes/${uuid}`;
  return {
    id: cardPath,
    name: `${card.name} · ${storeName}`,
    short_name: card.name,
    lang: locale,
    start_url: cardPath,
    scope: cardPath,
    display: 'standalone',
    background_color: card.cardColor,
    theme_color: card.cardColor,
    icons: [
      { src: `${cardPath}/icon.svg`, type: 'image/svg+xml', sizes: 'any', purpose: 'any' },
      { src: `${cardPath}/icon.svg`, type: 'image/svg+xml', sizes: 'any', purpose: 'maskable' },
    ],
  };
}
