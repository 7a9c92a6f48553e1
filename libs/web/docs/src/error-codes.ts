import { fillPlaceholders } from '#kernel/error-catalogue.js';
import { loadTemplate } from '#kernel/templates.js';
import { ERROR_CATALOGUE } from './error-catalogue.js';

const view = loadTemplate<{
  entries: { code: string; status: number; meaning: string; advice: string }[];
}>(import.meta.url, './views/error-codes.eta');

/** Renders every error code, each with an anchor of its name, to which error responses link. */
export function renderErrorCodes(): string {
  const fill = (text: string) =>
    fillPlaceholders(text, { seconds: 'the', allowed: 'those in Allow' });
  const entries = Object.entries(ERROR_CATALOGUE).map(
    ([code, { status, meaning, resolution, advice = resolution }]) => ({
      code,
      status,
      meaning: fill(meaning),
      advice: fill(advice ?? ''),
    }),
  );
  return view({ entries });
}
