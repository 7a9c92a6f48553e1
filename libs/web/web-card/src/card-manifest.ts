import type { PassContent } from '#passes/pass-content.js';

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
