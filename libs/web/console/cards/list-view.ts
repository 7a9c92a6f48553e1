import type { Localization, Translations } from '#translations/translations.js';
import { isExpired } from '#loyalty/cards/card.js';
import { STRIP_PRESETS } from '#loyalty/cards/card-appearance.js';
import { createStripDesign } from '#outbound/card-images/strip-design.js';
import { loadView } from '#web/pages/view.js';
import { loadAsset } from '#web/pages/assets.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import type { CardPage } from './designed-card.js';
import { CARD_TEMPLATES } from './card-templates.js';
import { renderStripQuery } from './draft-strips.js';

export const CARD_STYLE = loadAsset(import.meta.url, './assets/card-pages.css');

export type ListView = ReturnType<typeof createListView>;
export const listView = loadView<ListView>(import.meta.url, './views/cards.eta');

export type TemplateList = ReturnType<typeof createTemplateList>;
export const templatesView = loadView<TemplateList>(import.meta.url, './views/templates.eta');

/** Creates the data of the list. @property base its path */
export function createListView(
  { cards, next }: CardPage,
  {
    base,
    isArchive,
    canEdit,
    done,
    now,
    localization,
  }: {
    base: string;
    isArchive: boolean;
    canEdit: boolean;
    done: unknown;
    now: Date;
    localization: Localization;
  },
) {
  const t = localization.t.cardPages;
  const messages = { archived: t.archiveDone, unarchived: t.unarchiveDone };
  return {
    style: CARD_STYLE.path,
    base,
    isArchive,
    canEdit,
    flash: findFlashMessage(done, messages),
    next: next === null ? null : `${base}?after=${next}${isArchive ? '&scope=archived' : ''}`,
    cards: cards.map(({ card, rewardCount, holderCount, strip }) => ({
      name: card.name,
      path: `${base}/${card.id}`,
      strip,
      alt: t.pictureOf({ name: card.name }),
      isArchived: card.archivedAt !== null,
      isExpired: isExpired(card, now),
      holders: t.holders({ count: holderCount }),
      rewards: t.rewardCount({ count: rewardCount }),
    })),
  };
}

/** Creates the data of the templates. @param strips the path of pictures of cards that are not saved */
export function createTemplateList(base: string, strips: string, { cardPages: t }: Translations) {
  return {
    style: CARD_STYLE.path,
    base,
    templates: STRIP_PRESETS.map((key) => {
      const template = CARD_TEMPLATES[key];
      const design = createStripDesign(
        {
          ...template,
          stampIcon: template.icon,
          stripType: 'preset',
          stripPreset: key,
          stripColor: null,
          stripOpacity: 100,
          stripPicture: null,
        },
        [{ stampsRequired: template.stampsRequired, active: true }],
      );
      const filled = Math.ceil(template.stampsRequired * 0.4);
      return {
        path: `${base}/new?template=${key}`,
        shop: t.templates[key].shop,
        reward: t.templates[key].reward,
        strip: `${strips}?${renderStripQuery({ design, filled, size: '2x' })}`,
      };
    }),
  };
}
