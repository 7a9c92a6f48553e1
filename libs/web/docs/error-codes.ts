import { fillPlaceholders } from '#platform/kernel/error-catalogue.js';
import { listTextsByCode } from '#platform/kernel/issues.js';
import { loadTemplate } from '#platform/kernel/templates.js';
import { ISSUE_TEXTS } from '#translations/issues.js';
import { ERROR_CATALOGUE } from './error-catalogue.js';

type DocumentedError = { code: string; status: number; meaning: string; advice: string };

const view = loadTemplate<{ entries: DocumentedError[] }>(
  import.meta.url,
  './views/error-codes.eta',
);

type DocumentedIssue = { code: string; messages: string };

const issuesView = loadTemplate<{ issues: DocumentedIssue[] }>(
  import.meta.url,
  './views/issue-codes.eta',
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

/** Renders the codes of `error_codes`. */
export function renderIssueCodes(): string {
  return issuesView({ issues: listIssueCodes() });
}

/** Lists the codes of `error_codes`, each with its messages. */
export function listIssueCodes(): DocumentedIssue[] {
  return [...listTextsByCode(ISSUE_TEXTS)]
    .map(([code, texts]) => ({ code, messages: texts.join(' | ').replaceAll(', number}', '}') }))
    .sort((a, b) => (a.code < b.code ? -1 : 1));
}
