import type { Localization } from '#translations/translations.js';
import { isStampIcon } from '#loyalty/cards/card-appearance.js';
import { STAMP_ICON_PATHS } from '#loyalty/cards/stamp-icons.js';
import type { StripSize } from '#outbound/card-images/strip-design.js';
import { findTarget } from '#loyalty/stamping/unlocked-rewards.js';
import { FRONT } from '#loyalty/cards/pass-row.js';
import { arrangeFront, listRowFields } from '#outbound/apple-wallet/apple-front.js';
import { measureText } from '#loyalty/cards/text-width.js';
import { registerAsset } from '#web/pages/assets.js';
import { pickReadableColor } from '#web/pages/colors.js';
import { findDarkModules } from '#web/web-card/qr-modules.js';
import type { CardDraft } from './card-draft.js';

/** The code of every preview. No card has it: codes have no 1. */
const SAMPLE_CODE = 'A1B2C3D4';
const SAMPLE = findDarkModules(SAMPLE_CODE, 'M');
/** A file of its own, which browsers cache. */
const SAMPLE_PICTURE = registerAsset(
  'sample-code',
  'svg',
  `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SAMPLE.side} ${SAMPLE.side}" shape-rendering="crispEdges"><path fill="#fff" d="M0 0h${SAMPLE.side}v${SAMPLE.side}H0z"/><path d="${SAMPLE.path}"/></svg>`,
);
/** The width of the drawings. */
const WIDTH = 375;
const EDGE = 15;
/** The width of a character, as a share of the font size: an estimate, because the phone's own font differs as well. */
const EMS = 0.54;
const WIDE_EMS = 1;

type Field = { label: string; value: string; x: number; state?: StateKey };
export type StateKey = 'none' | 'half' | 'full';

/** One state of a card. */
type FrontState = {
  key: StateKey;
  stamps: number;
  count: string;
  /** Null: the card does not show it, or nothing is missing. */
  missing: string | null;
  strip: string;
  hero: string;
};

/** The fronts of a card in both wallets and in the browser, as drawings. Texts are cut to what fits. */
export type Fronts = ReturnType<typeof createFronts>;

export type FrontsInput = {
  draft: CardDraft;
  storeName: string;
  /** Of the store: the language of its cards. */
  store: Localization;
  /** Of the page. */
  page: Localization;
  /** Returns the address of an image. */
  toStripUrl: (filled: number, size: StripSize) => string;
};

export function createFronts({ draft, storeName, store, page, toStripUrl }: FrontsInput) {
  const { cardColor, textColor, design } = draft;
  const { t } = store;
  const states = createStates(draft, store, toStripUrl);
  const member = draft.showMember ? page.t.cardPages.sampleName : null;
  const text = pickReadableColor(cardColor, textColor);
  const name = draft.name === '' ? page.t.cardPages.name : draft.name;
  const header = draft.headerText === '' ? storeName : draft.headerText;
  const { layer } = design;
  return {
    states,
    /** The part of a picture that only the browser has, below the stamps; null: the strips show all of it. */
    chosen:
      'picture' in layer && layer.picture === null
        ? { ground: cardColor, opacity: design.opacity / 100 }
        : null,
    stampsRequired: draft.stampsRequired,
    code: { picture: SAMPLE_PICTURE.path, text: SAMPLE_CODE },
    stampsLabel: t.stamps.label,
    icon: {
      path: isStampIcon(design.icon) ? STAMP_ICON_PATHS[design.icon] : STAMP_ICON_PATHS.star,
      color: design.stampColor,
      ground: design.stampBackgroundColor,
    },
    apple: {
      ground: cardColor,
      text: textColor,
      ...arrangeAppleFront({ draft, storeName, name, member, t }),
    },
    google: {
      ground: cardColor,
      // Google chooses black or white itself.
      text: pickReadableColor(cardColor, '#FFFFFF'),
      issuer: cutText(storeName, 270, 16),
      title: cutText(name, 340, 24),
    },
    web: {
      ground: cardColor,
      text,
      header: cutText(header, 230, 14),
      title: cutText(name, 230, 22),
      fields: placeFields(member === null ? [] : [{ label: t.card.member, value: member }], {
        label: 12,
        value: 16,
      }),
      hint: t.card.showCode,
    },
  };
}

/** Arranges the front for an iPhone as a pass does: what does not fit there is on the back. */
function arrangeAppleFront({
  draft,
  storeName,
  name,
  member,
  t,
}: Pick<FrontsInput, 'draft' | 'storeName'> & {
  name: string;
  member: string | null;
  t: Localization['t'];
}) {
  const { stampsRequired, headerText, auxiliary } = draft;
  const front = arrangeFront({
    storeName,
    cardName: name,
    logoWidth: null,
    logoContainsName: false,
    headerText: headerText === '' ? null : headerText,
    count: { key: 'stamps', label: t.stamps.label, value: `${stampsRequired}/${stampsRequired}` },
    row: listRowFields(
      {
        memberName: member,
        stampsToReward: draft.showToReward ? stampsRequired : null,
        auxiliaryFields: auxiliary.map((field, index) => ({ ...field, key: `aux_${index + 1}` })),
      },
      t,
    ),
  });
  const text = front.header.find(({ key }) => key === 'header');
  const count = front.header.find(({ key }) => key === 'stamps');
  const fields = [...front.secondary, ...front.auxiliary].map(({ key, label, value }) => ({
    label: label ?? '',
    value: key === 'to_reward' ? null : String(value),
  }));
  return {
    title: front.title ?? '',
    header: text === undefined ? null : String(text.value),
    countLabel: (count?.label ?? '').toUpperCase(),
    /** Where the header text ends. */
    headerEnd: WIDTH - EDGE - measureText((count?.label ?? '').toUpperCase(), FRONT.label) - 10,
    fields: placeFields(fields, { label: FRONT.label, value: FRONT.value }),
  };
}

/** Lists the points of the way: one for each stamp, with the names of the rewards there, and the rewards beyond. */
export function listPoints(
  { stampsRequired, rewards }: CardDraft,
  { t }: Localization,
): {
  stamp: number;
  /** Null where there is no reward: the list says what its numbers do, once instead of up to 50 times. */
  label: string | null;
  row: number | null;
  cost: string;
  title: string;
  isBeyond: boolean;
}[] {
  const beyond = rewards.flatMap(({ stampsRequired: stamp }) =>
    stamp > stampsRequired ? [stamp] : [],
  );
  const stamps = [
    ...Array.from({ length: stampsRequired }, (_, index) => index + 1),
    ...new Set(beyond),
  ];
  return stamps.map((stamp) => {
    const here = rewards.filter((reward) => reward.stampsRequired === stamp);
    const title = here.map(({ name }) => name || t.cardPages.rewards).join(', ');
    const isBeyond = stamp > stampsRequired;
    const cost = t.cardPages.uses({ count: stamp });
    return {
      stamp,
      row: here[0]?.row ?? null,
      title,
      cost: isBeyond ? `${cost}, ${t.cardPages.beyond}` : cost,
      label: here.length > 0 ? t.cardPages.editAt({ stamp, names: title }) : null,
      isBeyond,
    };
  });
}

function createStates(
  draft: CardDraft,
  store: Localization,
  toStripUrl: FrontsInput['toStripUrl'],
): FrontState[] {
  const { stampsRequired } = draft;
  const numbers = new Intl.NumberFormat(store.locale);
  return listStates(stampsRequired).map(([key, stamps]) => {
    const missing = countMissing(draft, stamps);
    return {
      key,
      stamps,
      count: `${numbers.format(stamps)}/${numbers.format(stampsRequired)}`,
      missing: missing === null ? null : numbers.format(missing),
      strip: toStripUrl(stamps, '2x'),
      hero: toStripUrl(stamps, 'hero'),
    };
  });
}

function listStates(stampsRequired: number): [StateKey, number][] {
  return [
    ['none', 0],
    ['half', Math.floor(stampsRequired / 2)],
    ['full', stampsRequired],
  ];
}

/** Counts the stamps that are missing to the next reward; null when the card does not show them. */
function countMissing({ showToReward, rewards, stampsRequired }: CardDraft, stamps: number) {
  if (!showToReward) return null;
  const milestones = rewards.map(({ row: id, name, stampsRequired: point }) => ({
    id,
    name,
    stampsRequired: point,
    description: null,
    active: true,
  }));
  return Math.max(0, findTarget(stamps, { stampsRequired, rewards: milestones }) - stamps);
}

/** Places fields in columns of one row. A value of null is the number of missing stamps, which each state has. */
function placeFields(
  fields: { label: string; value: string | null }[],
  sizes: { label: number; value: number },
): (Omit<Field, 'value'> & { value: string | null })[] {
  const width = (WIDTH - 2 * EDGE) / Math.max(1, fields.length);
  return fields.map(({ label, value }, index) => ({
    label: cutText(label, width - 8, sizes.label),
    value: value === null ? null : cutText(value, width - 8, sizes.value),
    x: EDGE + index * width,
  }));
}

/** Cuts a text to a width, as phones do. */
export function cutText(text: string, width: number, size: number): string {
  const characters = [...new Intl.Segmenter(undefined, { granularity: 'grapheme' }).segment(text)];
  let used = 0;
  for (const [index, { segment }] of characters.entries()) {
    used += size * (isWide(segment) ? WIDE_EMS : EMS);
    if (used > width && index > 0) {
      return `${characters
        .slice(0, Math.max(1, index - 1))
        .map((character) => character.segment)
        .join('')
        .trimEnd()}…`;
    }
  }
  return text;
}

function isWide(character: string): boolean {
  return /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Extended_Pictographic}]/u.test(
    character,
  );
}
