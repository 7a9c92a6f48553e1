import { normalizeText } from '#kernel/text.js';

/** Reads a field in its normal form; empty when it was not sent. */
export function readFormText(
  form: Readonly<Record<string, string | undefined>>,
  name: string,
): string {
  return normalizeText(form[name] ?? '');
}

/** Formats a wait in minutes. */
export function formatWait(seconds: number): string {
  const minutes = Math.ceil(seconds / 60);
  return minutes <= 1 ? 'a minute' : `${minutes} minutes`;
}
