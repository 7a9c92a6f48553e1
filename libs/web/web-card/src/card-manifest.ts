import type { PassContent } from '#passes/pass-content.js';

/** What a phone needs to put the card on its home screen. */
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
