import type { FieldIssues } from '#platform/kernel/issues.js';
import type { Translations } from '#translations/translations.js';
import { toFieldSentences } from '#web/pages/error-sentences.js';

/** Describes why a row or a whole import failed: each field with its sentences. */
export function describeIssues(issues: FieldIssues, t: Translations): string {
  const { fields } = t.transfers;
  return Object.entries(toFieldSentences(issues, t))
    .map(([field, sentences]) => {
      const label = Object.hasOwn(fields, field) ? fields[field as keyof typeof fields] : '';
      return (label === '' ? '' : `${label}: `) + sentences.join(' ');
    })
    .join(' ');
}
