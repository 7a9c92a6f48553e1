/** Holds markup that needs no escaping. */
export class Html {
  constructor(readonly text: string) {}
}

type Part = Html | string | number | null | false | Part[];

/**
 * Builds markup from a template. It escapes every value except markup, joins lists, and omits null and false.
 */
export function html(strings: TemplateStringsArray, ...values: Part[]): Html {
  const text = strings.reduce(
    (before, after, i) => before + renderPart(values[i - 1] ?? null) + after,
  );
  return new Html(text);
}

/** Marks text of this program, such as a style sheet, as markup. Never use it for anybody's input. */
export function verbatim(text: string): Html {
  return new Html(text);
}

function renderPart(value: Part): string {
  if (value === null || value === false) return '';
  if (Array.isArray(value)) return value.map(renderPart).join('');
  return value instanceof Html ? value.text : escapeHtml(String(value));
}

const ENTITIES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? '');
}
