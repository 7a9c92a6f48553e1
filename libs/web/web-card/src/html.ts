/** Markup that may stand in a page as it is. */
export class Html {
  constructor(readonly text: string) {}
}

type Part = Html | string | number | null | false | Part[];

/**
 * A template of markup: every value in it is escaped, unless it is markup itself. Lists are joined, null and false are
 * left out.
 */
export function html(strings: TemplateStringsArray, ...values: Part[]): Html {
  const text = strings.reduce(
    (before, after, i) => before + renderPart(values[i - 1] ?? null) + after,
  );
  return new Html(text);
}

/** For text that this program has written itself, such as a style sheet. Never for what anybody else has. */
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
