import { normalizeText } from '#kernel/text.js';

/** The text of a field in its normal form; empty when it was not sent. */
export function readText(form: Readonly<Record<string, string | undefined>>, name: string): string {
  return normalizeText(form[name] ?? '');
}

/** For people: minutes when it is more than one. */
export function formatWait(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  return minutes <= 1 ? 'a minute' : `${minutes} minutes`;
}
