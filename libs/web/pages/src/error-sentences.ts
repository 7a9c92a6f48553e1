import { en, type Translations } from '#translations/en.js';

type MessageName = keyof typeof en.forms.messages;

/** The English messages with something that varies, as patterns. */
const PATTERNS = Object.keys(en.forms.messages)
  .filter((name): name is MessageName => name.includes('{}'))
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
  if (/^[a-z]/.test(plain)) return forms.other(plain);
  return /[.!?…]$/.test(message) ? message : `${message}.`;
}

/** Tells whether a message of a command has a sentence of its own. */
export function hasSentence(message: string, t: Translations): boolean {
  return findSentence(message, t) !== undefined;
}

function findSentence(message: string, { forms }: Translations): string | undefined {
  const plain = message.replace(/[.]$/, '');
  if (Object.hasOwn(forms.messages, plain)) return render(forms, plain as MessageName, []);
  for (const { name, pattern } of PATTERNS) {
    const match = pattern.exec(plain);
    if (match) return render(forms, name, match.slice(1));
  }
  return undefined;
}

function render({ messages }: Translations['forms'], name: MessageName, values: string[]): string {
  const text: string | ((...values: string[]) => string) = messages[name];
  return typeof text === 'string' ? text : text(...values);
}

function toPattern(name: string): RegExp {
  const parts = name.split('{}').map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('(.+)')}$`, 's');
}
