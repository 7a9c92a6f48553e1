import type { Message } from '#translations/catalogues.js';
import { getTranslations, type Translations } from '#translations/translations.js';

/** The names of the texts are the English messages, with `{}` or `{name}` for what varies. */
const PATTERNS = Object.keys(getTranslations('en').t.forms.messages)
  .filter((name) => name.includes('{'))
  .map((name) => ({ name, pattern: toPattern(name) }));

/**
 * Turns the message of a command into a sentence in the language of a page. The API and programs get the message
 * itself, which continues the name of the field in English: "must have 1 to 255 characters".
 * @param message also one that is a sentence already, which stays as it is
 */
export function toSentence(message: string, t: Translations): string {
  const sentence = findSentence(message, t);
  if (sentence !== undefined) return sentence;
  const { forms } = t;
  const plain = message.replace(/[.]$/, '');
  if (/^[a-z]/.test(plain)) return forms.other({ message: plain });
  return /[.!?…]$/.test(message) ? message : `${message}.`;
}

/** Tells whether a message of a command has a sentence of its own. */
export function hasSentence(message: string, t: Translations): boolean {
  return findSentence(message, t) !== undefined;
}

function findSentence(message: string, { forms }: Translations): string | undefined {
  const plain = message.replace(/[.]$/, '');
  const messages: object = forms.messages;
  const texts = messages as Readonly<Record<string, string | Message>>;
  if (Object.hasOwn(texts, plain)) return render(texts[plain], {});
  for (const { name, pattern } of PATTERNS) {
    const match = pattern.exec(plain);
    if (match) return render(texts[name], match.groups ?? {});
  }
  return undefined;
}

function render(
  text: string | Message | undefined,
  values: Record<string, string>,
): string | undefined {
  return typeof text === 'function' ? text(values) : text;
}

function toPattern(name: string): RegExp {
  const escaped = name.replaceAll(/[.*+?^$()|[\]\\]/g, String.raw`\$&`);
  const pattern = escaped.replaceAll('{}', '.+').replaceAll(/\{(\w+)\}/g, '(?<$1>.+)');
  return new RegExp(`^${pattern}$`, 's');
}
