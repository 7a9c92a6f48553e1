import type { FieldErrors } from '#platform/kernel/errors.js';
import type { FieldIssues, Issue, ParamsByCode } from '#platform/kernel/issues.js';
import type { Message } from '#translations/catalogues.js';
import type { ISSUE_TEXTS } from '#translations/issues.js';
import type { Translations } from '#translations/translations.js';

type ParamsOfIssues = ParamsByCode<typeof ISSUE_TEXTS>;

/** What the texts of a language need, so that a code without a sentence does not compile. */
type Sentences = {
  readonly [Code in keyof ParamsOfIssues]: string | ((params: ParamsOfIssues[Code]) => string);
};

/** Returns the sentence for an issue in the language of a page. */
export function toSentence({ code, params }: Issue, { issues }: Translations): string {
  const sentences: Sentences = issues;
  const sentence = sentences[code as keyof Sentences] as string | Message;
  return typeof sentence === 'function' ? sentence(params) : sentence;
}

/** Returns the sentences for issues by field, each once. */
export function toFieldSentences(issues: FieldIssues, t: Translations): FieldErrors {
  const fields = Object.entries(issues).map(([field, list]) => [
    field,
    [...new Set(list.map((issue) => toSentence(issue, t)))],
  ]);
  return Object.fromEntries(fields) as FieldErrors;
}
