/** Begins a text that languages write in the middle of a sentence with a capital letter. */
export function capitalize(text: string, locale: string): string {
  return text.charAt(0).toLocaleUpperCase(locale) + text.slice(1);
}
