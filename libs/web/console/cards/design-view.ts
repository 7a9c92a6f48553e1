import type { Localization, Translations } from '#translations/translations.js';
import { CARD_WARNINGS } from '#loyalty/cards/card-contrast.js';
import { BARCODE_FORMATS } from '#loyalty/cards/barcode.js';
import { STAMP_ICONS, STRIP_PRESETS } from '#loyalty/cards/card-appearance.js';
import { loadAsset } from '#web/pages/assets.js';
import { findFlashMessage } from '#web/pages/page-query.js';
import { loadView } from '#web/pages/view.js';
import type { DesignedCard } from './designed-card.js';
import { isBeyondCard, withEmptyRow, type DesignForm } from './design-form.js';
import type { FrontsView } from './fronts-view.js';
import type { UndoForm } from './undo-notice.js';
import { CARD_STYLE } from './list-view.js';
import { ICON_STYLE } from './stamp-icon-style.js';

export type DesignView = ReturnType<typeof createDesignView>;
export const designView = loadView<DesignView>(import.meta.url, './views/design.eta');
export const DESIGN_SCRIPT = loadAsset(import.meta.url, './assets/card-design.js');

/** What the form shows. @property designed null: the card is new @property openedUpdatedAt when it was changed last */
export type DesignState = {
  form: DesignForm;
  designed: DesignedCard | null;
  done: unknown;
  undo: UndoForm | null;
  isUnsaved: boolean;
  openedUpdatedAt: string | undefined;
};

type Texts = Translations['cardPages'];

/** Creates the data of the designer. Paths are from the root of the service. */
export function createDesignView(
  { form, designed, done, undo, isUnsaved, openedUpdatedAt }: DesignState,
  {
    base,
    posters,
    preview,
    localization,
    isOnlyLocal,
  }: {
    base: string;
    posters: string;
    preview: FrontsView;
    isOnlyLocal: boolean;
    localization: Localization;
  },
) {
  const t = localization.t.cardPages;
  const id = designed?.card.id;
  const path = id === undefined ? base : `${base}/${id}`;
  const holderCount = designed?.holderCount ?? 0;
  const name = designed?.card.name ?? '';
  return {
    style: CARD_STYLE.path,
    iconStyle: ICON_STYLE.path,
    icons: STAMP_ICONS,
    barcodes: BARCODE_FORMATS.map((value) => ({ value, text: t.barcodes[value] })),
    presets: listPresets(form.fields.strip_preset, t),
    base,
    path,
    isNew: id === undefined,
    tryItWhy: isOnlyLocal ? localization.t.words.localOnly : t.tryItWhy,
    isUnsaved: id === undefined || isUnsaved,
    isArchived: designed !== null && designed.card.archivedAt !== null,
    hasPicture: designed !== null && designed.card.stripPicture !== null,
    title: name || t.newTitle,
    previewPath: id === undefined ? `${base}/preview` : `${base}/preview?card=${id}`,
    flash: {
      kind: 'good',
      text: findFlashMessage(done, {
        saved: holderCount === 0 ? t.saved({ name }) : t.savedFor({ count: holderCount, name }),
        created: t.created,
        undone: t.undone,
      }),
      link: done === 'created' && { path: `${posters}?card=${id}`, text: t.makePoster },
      undo,
    },
    openedUpdatedAt,
    preview,
    warnings: CARD_WARNINGS.map((warning) => ({
      warning,
      isShown: preview.warnings.some((candidate) => candidate.warning === warning),
    })),
    fields: form.fields,
    rewards: listRows(form, localization),
    sure: holderCount === 0 ? null : t.sure({ count: holderCount }),
    changes:
      id === undefined ? '' : holderCount === 0 ? t.changesNone : t.changes({ count: holderCount }),
  };
}

/** Lists the drawings to choose from. A name that is not drawn is accepted by the API, and kept. */
function listPresets(current: string, t: Texts): { value: string; text: string }[] {
  const presets = [
    { value: '', text: t.noPreset },
    ...STRIP_PRESETS.map((value) => ({ value, text: t.templates[value].shop })),
  ];
  return presets.some(({ value }) => value === current)
    ? presets
    : [...presets, { value: current, text: current }];
}

function listRows({ fields, rewards }: DesignForm, { t }: Localization) {
  return withEmptyRow(rewards).map((row, index) => {
    const isNew = row.id === '' && row.name === '' && row.stamps === '';
    return {
      ...row,
      index,
      legend: t.cardPages.reward({ number: index + 1 }),
      anchor: isNew ? 'new' : String(index),
      isBeyond: isBeyondCard(row, fields.stamps_required),
      // With a script it stands there only once somebody adds a reward.
      isSpare: isNew && index > 0,
    };
  });
}
