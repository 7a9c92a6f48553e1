import { computeContrast } from '#platform/kernel/contrast.js';
import { readTextFile } from '#platform/kernel/templates.js';
import type { PassContent } from '#outbound/passes/pass-content.js';
import { loadAsset, NETWORK_IN_TIME } from '#web/pages/assets.js';
import { hashStyle, renderColorStyle, type RenderedPage } from '#web/pages/page.js';
import { createPlainFrame, loadView } from '#web/pages/view.js';
import { createCardView, type CardViewInput, type WalletBadge } from './card-view.js';
import { joinNames } from '#web/pages/join-names.js';

/** The parts of a bar of progress that are not full: `--line` of the style, in light and dark. */
const TRACKS = { light: '#E0DBD4', dark: '#3B3733' };
/** The minimum contrast of shapes (WCAG 2.2, success criterion 1.4.11). */
const MIN_CONTRAST = 3;

type CardView = ReturnType<typeof createCardView>;
type Buttons = NonNullable<CardView['buttons']>;
/** @property html of a link to a wallet, which stands in several places */
type CardPage = Omit<CardView, 'buttons'> & {
  buttons: (Omit<Buttons, 'wallets'> & { wallets: { html: string }[] }) | null;
  script: string;
  style: string;
};
type WalletButton = { vendor: string; text: string; href: string; badge: WalletBadge | null };

const pageView = loadView<CardPage>(import.meta.url, './views/card.eta');
const walletButtonView = loadView<WalletButton>(import.meta.url, './views/wallet-button.eta');
const iconView = loadView<Record<'ground' | 'circle' | 'mark', string>>(
  import.meta.url,
  './views/icon.eta',
);
const SCRIPT = loadAsset(import.meta.url, './assets/card.js');
const STYLE = readTextFile(import.meta.url, './assets/card.css').replace(/\s+/g, ' ');
/** Runs on the path of a card, so it is no asset. */
export const WORKER_SCRIPT = NETWORK_IN_TIME + readTextFile(import.meta.url, './assets/worker.js');

/**
 * Renders the page of a customer card. It is complete without its script, which only keeps it up to date, and its style
 * is inline, allowed by its hash: thus a cached page is complete without another request.
 * @param root the prefix of every path
 */
export function renderCardPage(input: CardViewInput, root: string): RenderedPage {
  const view = createCardView(input);
  const { cardColor, textColor } = input.content.card;
  const style =
    renderColorStyle('card', { ground: cardColor, text: textColor }) +
    renderBarStyle(cardColor) +
    STYLE;
  const frame = createPlainFrame(root, view.lang);
  const buttons = view.buttons && {
    ...view.buttons,
    wallets: view.buttons.wallets.map((wallet) => ({
      html: walletButtonView({ ...wallet, href: `${root}${view.path}/${wallet.vendor}` }, frame),
    })),
  };
  return {
    html: pageView({ ...view, buttons, script: SCRIPT.path, style }, frame),
    policy: [
      "default-src 'none'",
      `style-src ${hashStyle(style)}`,
      "script-src 'self'",
      "img-src 'self' data:",
      "connect-src 'self'",
      "manifest-src 'self'",
      "worker-src 'self'",
      "base-uri 'none'",
      "form-action 'self'",
      "frame-ancestors 'none'",
    ].join('; '),
    referrerPolicy: 'no-referrer',
  };
}

/** Gives bars of progress the colour of the card, where it stands out from the rest of the bar. */
function renderBarStyle(color: string): string {
  const bar = (track: string) =>
    computeContrast(color, track) >= MIN_CONTRAST ? color : 'var(--ink)';
  return `:root{--bar:${bar(TRACKS.light)}}@media (prefers-color-scheme:dark){:root{--bar:${bar(TRACKS.dark)}}}`;
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

/**
 * Creates the web app manifest, with which phones install the card on the home screen.
 * @param logo the drawings of the store's logo in two sizes; null without one
 */
export function createCardManifest(
  { uuid, card, storeName, locale }: PassContent,
  root: string,
  logo: { small: string; large: string } | null,
) {
  const cardPath = `${root}/passes/${uuid}`;
  return {
    id: cardPath,
    name: joinNames(card.name, storeName),
    short_name: card.name,
    lang: locale,
    start_url: cardPath,
    scope: cardPath,
    display: 'standalone',
    background_color: card.cardColor,
    theme_color: card.cardColor,
    icons: ['any', 'maskable'].flatMap((purpose) =>
      logo === null
        ? [{ src: `${cardPath}/icon.svg`, type: 'image/svg+xml', sizes: 'any', purpose }]
        : [
            { src: logo.small, type: 'image/png', sizes: '192x192', purpose },
            { src: logo.large, type: 'image/png', sizes: '512x512', purpose },
          ],
    ),
  };
}
