import { fillPlaceholders } from '#kernel/error-catalogue.js';
import { loadTemplate } from '#kernel/templates.js';
import { ERROR_CATALOGUE } from './error-catalogue.js';

type DocumentedError = { code: string; status: number; meaning: string; advice: string };

const view = loadTemplate<{ entries: DocumentedError[] }>(
  import.meta.url,
  './views/error-codes.eta',
);

/** Renders every error code, each with an anchor of its name, to which error responses link. */
export function renderErrorCodes(): string {
  return view({ entries: listErrorEntries() });
}

/** Lists every error code with what it means and what to do. */
export function listErrorEntries(): DocumentedError[] {
  const fill = (text: string) =>
    fillPlaceholders(text, { seconds: 'the', allowed: 'those in Allow' });
  return Object.entries(ERROR_CATALOGUE).map(
    ([code, { status, meaning, resolution, advice = resolution }]) => ({
      code,
      status,
      meaning: fill(meaning),
      advice: fill(advice ?? ''),
    }),
  );
}
