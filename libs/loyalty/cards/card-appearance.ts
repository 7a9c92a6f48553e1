/** Published: values may be added, never removed. */
// prettier-ignore
export const STAMP_ICONS = [
  'coffee', 'heart', 'star', 'check', 'smile', 'cup', 'bubble_tea', 'beer', 'wine', 'cocktail',
  'ice_cream', 'cake', 'croissant', 'bread', 'pizza', 'burger', 'taco', 'sushi', 'salad', 'scissors',
  'razor', 'nail_polish', 'lipstick', 'spa', 'dumbbell', 'yoga', 'paw', 'flower', 'leaf', 'book',
  'shopping_bag', 'gift', 'car', 'bike', 'ticket', 'crown', 'diamond', 'sun',
] as const;

// prettier-ignore
export const STRIP_PRESETS = [
  'coffee', 'bakery', 'restaurant', 'bar', 'salon', 'barber', 'spa', 'fitness', 'pets', 'flowers',
  'retail', 'books',
] as const;

export type StripPreset = (typeof STRIP_PRESETS)[number];

export function isStripPreset(name: string | null): name is StripPreset {
  return STRIP_PRESETS.some((preset) => preset === name);
}

export type StampIcon = (typeof STAMP_ICONS)[number];

export function isStampIcon(name: string): name is StampIcon {
  return STAMP_ICONS.some((icon) => icon === name);
}
