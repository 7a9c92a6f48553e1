import type { Translations } from '#translations/translations.js';

export type StepName = keyof Translations['overview']['steps'];

/** The steps in which a store is set up, each with the page that it is done on. */
const STEPS: [StepName, string][] = [
  ['card', 'cards'],
  ['reward', 'cards'],
  ['logo', 'brand'],
  ['location', 'locations'],
  ['poster', 'posters'],
  ['team', 'users'],
  ['customer', 'customers'],
];

/** @property page of the store, where it is done */
export type Step = { title: string; text: string; page: string; isDone: boolean };

/** Lists the steps that there are, those that are left first. */
export function listSteps(
  done: Partial<Record<StepName, boolean>>,
  t: Translations['overview'],
): Step[] {
  const steps = STEPS.flatMap(([name, page]): Step[] => {
    const isDone = done[name];
    return isDone === undefined ? [] : [{ ...t.steps[name], page, isDone }];
  });
  return [...steps.filter(({ isDone }) => !isDone), ...steps.filter(({ isDone }) => isDone)];
}
