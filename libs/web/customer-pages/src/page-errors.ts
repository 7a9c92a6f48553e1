import { NotFoundError, RejectedError } from '#kernel/errors.js';
import type { FormErrors } from '#pages/form-errors.js';
import type { Translations } from '#translations/en.js';

type Texts = Translations['customerPages']['errors'];

/** Texts of refusals by the code of the error. */
const BY_CODE: Readonly<Record<string, keyof Omit<Texts, 'tooLong' | 'refused'>>> = {
  insufficient_stamps: 'insufficient',
  card_expired: 'expired',
  customer_erased: 'erased',
  customer_merged: 'merged',
  quota_exceeded: 'limit',
  limit_reached: 'limit',
};

/** Texts of refusals that have no code of their own, by what the message says. */
const BY_MESSAGE: readonly [RegExp, keyof Omit<Texts, 'tooLong' | 'refused'>][] = [
  [/already reversed/, 'reversed'],
  [/itself a reversal|can be reversed|moved by merging/, 'notReversible'],
  [/customer already has/, 'hasCard'],
  [/e-mail address or a phone number is needed/, 'contact'],
];

/** Turns a refusal into the texts of a form. @throws every other error */
export function toPageErrors(error: unknown, t: Texts): FormErrors {
  if (error instanceof NotFoundError || !(error instanceof RejectedError)) throw error;
  const code = BY_CODE[error.code];
  if (code !== undefined) return { fields: {}, text: t[code] };
  const { base = [], ...fields } = error.errors;
  const texts = base.map((message) => translateBase(message, t));
  const translated = Object.fromEntries(
    Object.entries(fields).map(([name, messages]) => [
      name,
      messages.map((message) => translateField(name, message, error.code, t)),
    ]),
  );
  const isMarked = Object.keys(translated).length > 0;
  return { fields: translated, text: texts.length > 0 || !isMarked ? texts.join(' ') : t.check };
}

function translateBase(message: string, t: Texts): string {
  const translation = BY_MESSAGE.find(([pattern]) => pattern.test(message));
  return translation ? t[translation[1]] : t.refused(message);
}

function translateField(name: string, message: string, code: string, t: Texts): string {
  const translation = BY_MESSAGE.find(([pattern]) => pattern.test(message));
  if (translation) return t[translation[1]];
  if (code === 'taken') return t.taken;
  if (/is required|must not be blank/.test(message)) return t.required;
  const [, max] = /at most (\d+) characters/.exec(message) ?? [];
  if (max !== undefined) return t.tooLong(max);
  if (name === 'email') return t.email;
  if (name === 'phone') return t.phone;
  if (name === 'birthday') return t.birthday;
  if (name === 'stamps') return t.stamps;
  return name === 'card_id' ? t.choice : t.refused(message);
}
