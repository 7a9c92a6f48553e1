import type { Translations } from '#translations/translations.js';

export type StepName = keyof Translations['overview']['steps'];

/** A step with the page of the menu that it is done on, and what follows its path. */
type Place = [name: StepName, page: string, below: string];

/** What leads to the first stamp. */
const NEEDED: Place[] = [
  ['name', 'settings', '/name'],
  ['card', 'cards', '/new'],
  ['reward', 'cards', ''],
  ['poster', 'posters', '/new'],
  ['customer', 'customers', '/new'],
  ['stamp', 'counter', ''],
];

/** What is good to have before many customers come. */
const USEFUL: Place[] = [
  ['logo', 'brand', ''],
  ['location', 'locations', '/new'],
  ['privacy', 'settings', '#field-privacy_text'],
  ['team', 'users', ''],
];

/** @property page of the menu, where it is done @property below what follows the path of the page */
export type Step = { title: string; text: string; page: string; below: string; isDone: boolean };

/** Lists the steps in which a store is set up, in their order: first those without which it gives no stamps. */
export function listSteps(
  done: Record<StepName, boolean>,
  t: Translations['overview'],
  hasWallets: boolean,
): { needed: Step[]; useful: Step[] } {
  const toStep = ([name, page, below]: Place): Step => {
    const texts = t.steps[name];
    const text = name === 'location' && !hasWallets ? t.locationWithoutWallets : texts.text;
    return { ...texts, text, page, below, isDone: done[name] };
  };
  return { needed: NEEDED.map(toStep), useful: USEFUL.map(toStep) };
}
