import type { PassContent } from '#passes/pass-content.js';

/** What a phone needs to put the card on its home screen. */
export function cardManifest({ uuid, card, storeName, locale }: PassContent, root: string) {
  const at = `${root}/passes/${uuid}`;
  return {
    id: at,
    name: `${card.name} · ${storeName}`,
    short_name: card.name,
    lang: locale,
    start_url: at,
    scope: at,
    display: 'standalone',
    background_color: card.cardColor,
    theme_color: card.cardColor,
    icons: [
      { src: `${at}/icon.svg`, type: 'image/svg+xml', sizes: 'any', purpose: 'any' },
      { src: `${at}/icon.svg`, type: 'image/svg+xml', sizes: 'any', purpose: 'maskable' },
    ],
  };
}
