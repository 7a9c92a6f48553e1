import type { Translations } from '#translations/translations.js';

export type StepName = keyof Translations['overview']['steps'];

/** The steps in which a store is set up, each with the page of the menu that it is done on, and what follows its path. */
const STEPS: [name: StepName, page: string, below: string][] = [
  ['name', 'settings', '/name'],
  ['card', 'cards', '/new'],
  ['reward', 'cards', ''],
  ['logo', 'brand', ''],
  ['location', 'locations', '/new'],
  ['privacy', 'settings', '#field-privacy_text'],
  ['poster', 'posters', '/new'],
  ['team', 'users', ''],
  ['customer', 'customers', '/new'],
];

/** @property page of the menu, where it is done @property below what follows the path of the page */
export type Step = { title: string; text: string; page: string; below: string; isDone: boolean };

/** Lists the steps that there are, those that are left first. */
export function listSteps(
  done: Partial<Record<StepName, boolean>>,
  t: Translations['overview'],
  hasWallets: boolean,
): Step[] {
  const steps = STEPS.flatMap(([name, page, below]): Step[] => {
    const isDone = done[name];
    if (isDone === undefined) return [];
    const texts = t.steps[name];
    const text = name === 'location' && !hasWallets ? t.locationWithoutWallets : texts.text;
    return [{ ...texts, text, page, below, isDone }];
  });
  return [...steps.filter(({ isDone }) => !isDone), ...steps.filter(({ isDone }) => isDone)];
}
