import { RejectedError, UnavailableError } from '#kernel/errors.js';
import type { FormErrors } from '#pages/form-errors.js';
import type { Translations } from '#translations/en.js';

type Texts = Translations['webhookPages']['errors'];

/** Texts of refusals of the whole request, by what the message says. */
const BY_MESSAGE: readonly [RegExp, keyof Omit<Texts, 'header' | 'refused'>][] = [
  [/is disabled/, 'disabled'],
  [/Another replay/, 'running'],
  [/no longer kept/, 'gone'],
  [/has reached its limit/, 'limit'],
];

/** Turns a refusal into the texts of a form. @throws every other error */
export function toWebhookErrors(error: unknown, t: Texts): FormErrors {
  if (error instanceof UnavailableError && /Other tests/.test(error.message)) {
    return { fields: {}, text: t.busy };
  }
  if (!(error instanceof RejectedError)) throw error;
  const { base = [], ...others } = error.errors;
  const fields = Object.fromEntries(
    Object.entries(others).map(([name, messages]) => [
      name,
      messages.map((message) => translateField(name, message, t)),
    ]),
  );
  const texts = base.map((message) => {
    const translation = BY_MESSAGE.find(([pattern]) => pattern.test(message));
    return translation ? t[translation[1]] : t.refused(message);
  });
  return { fields, text: texts.length > 0 ? texts.join(' ') : t.check };
}

/** Translates the error of a field. What the API says about headers stays English, as header names are. */
function translateField(name: string, message: string, t: Texts): string {
  switch (name) {
    case 'target_url':
      return /publicly reachable/.test(message) ? t.blocked : t.url;
    case 'events':
    case 'types':
      return t.events;
    case 'payload_format':
      return /exactly one/.test(message) ? t.flat : t.choice;
    case 'headers':
      return /object of header names|at most/.test(message) ? t.headers : t.header(message);
    case 'description':
      return t.description;
    case 'from':
      return t.from;
    case 'to':
      return /after from/.test(message) ? t.to : t.from;
    case 'signature':
    case 'grace_seconds':
    case 'card_ids':
    case 'location_ids':
      return t.choice;
    default:
      return t.refused(message);
  }
}
