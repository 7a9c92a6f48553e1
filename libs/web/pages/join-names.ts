/** Joins the names of a title, each once: that of a card may be that of its store, or of its poster. */
export function joinNames(...names: string[]): string {
  return [...new Set(names)].join(' · ');
}
