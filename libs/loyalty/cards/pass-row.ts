import type { AuxiliaryField, CardAttributes } from './card.events.js';
import { measureText } from './text-width.js';

/**
 * The front of a store card in points, as on the narrowest phone that Wallet runs on. Apple documents the sizes of the
 * images and that secondary and auxiliary fields share a row of at most four; the rest is measured on phones. Fields of
 * a row have columns of one width, and a text that does not fit its column is cut off.
 */
export const FRONT = {
  width: 359,
  edge: 12,
  gap: 8,
  title: 19,
  label: 11,
  headerValue: 17,
  value: 16,
} as const;

export const INNER_WIDTH = FRONT.width - 2 * FRONT.edge;
const MAX_ROW_FIELDS = 4;
type PassRowField = { key: string; label?: string; value: string | number };

/**
 * A field that may stand in the row.
 * @property weight how much it matters that it does
 * @property isShort whether it may stand at the top instead
 */
export type RowField = PassRowField & {
  section: 'secondary' | 'auxiliary';
  weight: number;
  isShort?: true;
};

/** How much a field matters: each more than all of those before it together. */
export const WEIGHTS = { member: 1, toReward: 2, header: 4, auxiliary: 8 } as const;

/** Lists the texts that a store has written for the front. The keys are those of the API (CARD-25). */
export function listOwnFields({
  headerText,
  auxiliaryFields,
}: {
  headerText: string | null;
  auxiliaryFields: readonly AuxiliaryField[];
}): RowField[] {
  return [
    ...auxiliaryFields.map(({ key, label, value }) => ({
      key,
      ...(label && { label }),
      value,
      section: 'auxiliary' as const,
      weight: WEIGHTS.auxiliary,
    })),
    ...(headerText === null
      ? []
      : [
          {
            key: 'header',
            value: headerText,
            section: 'auxiliary' as const,
            weight: WEIGHTS.header,
          },
        ]),
  ];
}

/** Lists the texts of a store that a narrow phone shows on the back only, unless there is room beside its name. */
export function listHiddenFields(
  card: Pick<CardAttributes, 'headerText' | 'auxiliaryFields'>,
): string[] {
  const fields = listOwnFields(card);
  const row = pickFitting(fields);
  return fields.filter((field) => !row.includes(field)).map(({ key }) => key);
}

/** Picks the fields of the row: those that matter most, and as many as fit. */
export function pickFitting(candidates: RowField[]): RowField[] {
  const sizes = candidates
    .filter((field) => !hasLines(field))
    .map((field) => ({ field, width: measureField(field, FRONT.value) }));
  let best: RowField[] = [];
  for (let chosen = 1; chosen < 1 << sizes.length; chosen++) {
    const row = sizes.filter((_, index) => (chosen >> index) & 1);
    if (row.length > MAX_ROW_FIELDS) continue;
    const column = (INNER_WIDTH - (row.length - 1) * FRONT.gap) / row.length;
    if (row.some(({ width }) => width > column)) continue;
    const fields = row.map(({ field }) => field);
    const gain = sumWeights(fields) - sumWeights(best);
    if (gain > 0 || (gain === 0 && fields.length > best.length)) best = fields;
  }
  return best;
}

function hasLines({ value, label }: PassRowField): boolean {
  return `${label ?? ''}${value}`.includes('\n');
}

export function sumWeights(fields: RowField[]): number {
  return fields.reduce((sum, { weight }) => sum + weight, 0);
}

export function measureField({ label, value }: PassRowField, size: number): number {
  return Math.max(label === undefined ? 0 : measureLabel(label), measureText(String(value), size));
}

/** Measures a label, which phones write in capitals. */
export function measureLabel(label: string): number {
  return measureText(toCapitals(label), FRONT.label);
}

export function toCapitals(text: string): string {
  return text.toUpperCase();
}
