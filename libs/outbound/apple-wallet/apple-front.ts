import type { Translations } from '#translations/translations.js';
import type { AuxiliaryField } from '#loyalty/cards/card.events.js';
import type { PassContent } from '#outbound/passes/pass-content.js';
import type { PassField } from './pass-json.js';
import {
  FRONT,
  INNER_WIDTH,
  listOwnFields,
  measureField,
  measureLabel,
  pickFitting,
  sumWeights,
  toCapitals,
  WEIGHTS,
  type RowField,
} from '#loyalty/cards/pass-row.js';
import { measureText, shortenText } from '#loyalty/cards/text-width.js';

/** The logo of a card without one of its store: the stamp icon. */
const ICON_WIDTH = 50;

export type FrontInput = {
  storeName: string;
  cardName: string;
  /** The width of the store's logo in points; null without one. */
  logoWidth: number | null;
  /** Whether the name of the store stands in its logo. */
  logoContainsName: boolean;
  headerText: string | null;
  count: { key: string; label: string; value: string };
  /** In the order in which they are shown. */
  row: RowField[];
};

export type Front = {
  /** Beside the logo; null: the logo says it. */
  title: string | null;
  header: PassField[];
  secondary: PassField[];
  auxiliary: PassField[];
  /** What did not fit, or only shortened: it belongs on the back in full. */
  moved: PassField[];
  /** How much those matter. */
  movedWeight: number;
  isStoreShortened: boolean;
  isCardShortened: boolean;
};

type Top = Pick<Front, 'title' | 'header' | 'isStoreShortened' | 'isCardShortened'>;

/**
 * Arranges the front so that nothing is cut off, and as little as possible has to go to the back. The names of store and
 * card are in the bar at the top, which is all that a stack of passes shows: the store's name beside its logo or in it,
 * and the card's name as the label of the balance.
 */
export function arrangeFront(input: FrontInput): Front {
  const tops = listTops(input).filter((top) => measureTop(input, top) <= INNER_WIDTH);
  const [first, ...others] = (tops.length > 0 ? tops : [shortenTop(input)]).map((top) =>
    completeFront(top, input),
  );
  if (!first) throw new Error('there is no arrangement');
  return others.reduce(
    (best, front) => (front.movedWeight < best.movedWeight ? front : best),
    first,
  );
}

/** Places what is not at the top. */
function completeFront(top: Top, { headerText, row }: FrontInput): Front {
  const text = listOwnFields({ headerText, auxiliaryFields: [] });
  const candidates = [...row, ...text].filter(
    ({ key }) => !top.header.some((field) => field.key === key),
  );
  const rowFields = pickFitting(candidates);
  const movedFields = candidates.filter((field) => !rowFields.includes(field));
  const inSection = (section: RowField['section']) =>
    rowFields.filter((field) => field.section === section).map(toField);
  return {
    ...top,
    secondary: inSection('secondary'),
    auxiliary: inSection('auxiliary'),
    moved: movedFields.map(toField),
    movedWeight: sumWeights(movedFields),
  };
}

/** Lists what may stand below the stamps. The store's own fields matter most, and the holder's name least. */
export function listRowFields(
  {
    memberName,
    stampsToReward,
    auxiliaryFields,
  }: Pick<PassContent, 'memberName' | 'stampsToReward'> & {
    auxiliaryFields: AuxiliaryField[];
  },
  t: Translations,
): RowField[] {
  return [
    ...(memberName === null
      ? []
      : [
          {
            key: 'member',
            label: t.applePass.member,
            value: memberName,
            section: 'secondary' as const,
            weight: WEIGHTS.member,
          },
        ]),
    ...(stampsToReward === null
      ? []
      : [
          {
            key: 'to_reward',
            label: t.applePass.toReward,
            value: stampsToReward,
            section: 'secondary' as const,
            weight: WEIGHTS.toReward,
            isShort: true as const,
          },
        ]),
    ...listOwnFields({ headerText: null, auxiliaryFields }),
  ];
}

/** Lists the ways to fill the bar at the top, the best of equal ones first. */
function listTops(input: FrontInput): Top[] {
  const { storeName, cardName, headerText, count, row } = input;
  const labelledCount = { ...count, label: cardName };
  const names = isStoreInLogo(input)
    ? [
        { title: cardName, count },
        { title: null, count: labelledCount },
      ]
    : [{ title: storeName, count: labelledCount }];
  const text =
    headerText === null || headerText.includes('\n') ? [] : [{ key: 'header', value: headerText }];
  const short = row.filter(({ isShort }) => isShort).map(toField);
  return [text, [], [...text, ...short], short].flatMap((fields) =>
    names.map(({ title, count: last }) => ({
      title,
      header: [...fields, last],
      isStoreShortened: false,
      isCardShortened: false,
    })),
  );
}

/** Shortens what is too long: each name gets half of the room, or more if the other needs less. */
function shortenTop(input: FrontInput): Top {
  const { storeName, cardName, logoWidth, count } = input;
  const isNamed = isStoreInLogo(input);
  const room = INNER_WIDTH - (logoWidth ?? ICON_WIDTH) - (isNamed ? 1 : 2) * FRONT.gap;
  const storeWidth = isNamed ? 0 : measureText(storeName, FRONT.title);
  const labelRoom = Math.max(room / 2, room - storeWidth);
  const labelWidth = Math.min(measureLabel(cardName), isNamed ? room : labelRoom);
  const label = shortenText(cardName, labelWidth, FRONT.label, toCapitals);
  const countWidth = Math.max(measureLabel(label), measureText(count.value, FRONT.headerValue));
  const title = isNamed ? null : shortenText(storeName, room - countWidth, FRONT.title);
  return {
    title,
    header: [{ ...count, label }],
    isStoreShortened: title !== null && title !== storeName,
    isCardShortened: label !== cardName,
  };
}

/** Tells whether the logo says the name of the store. */
function isStoreInLogo({ logoWidth, logoContainsName }: FrontInput): boolean {
  return logoWidth !== null && logoContainsName;
}

function measureTop({ logoWidth }: FrontInput, { title, header }: Top): number {
  const titleWidth = title === null ? 0 : FRONT.gap + measureText(title, FRONT.title);
  const headerWidth = header.reduce(
    (sum, field) => sum + FRONT.gap + measureField(field, FRONT.headerValue),
    0,
  );
  return (logoWidth ?? ICON_WIDTH) + titleWidth + headerWidth;
}

function toField({
  section: _section,
  weight: _weight,
  isShort: _isShort,
  ...field
}: RowField): PassField {
  return field;
}
