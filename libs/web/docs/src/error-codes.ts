import { fillPlaceholders } from '#kernel/error-catalogue.js';
import { ERROR_CATALOGUE } from './error-catalogue.js';

/** Renders every error code, each with an anchor of its name, to which error responses link. */
export function renderErrorCodes(): string {
  const entries = Object.entries(ERROR_CATALOGUE).map(
    ([code, { status, meaning, resolution, advice = resolution }]) =>
      `<dt id="${code}"><a class="anchor" href="#${code}"><code>${code}</code></a> <span class="status">${status}</span></dt>
<dd><p>${escapeAdvice(meaning)}</p><p>What to do: ${escapeAdvice(advice ?? '')}</p></dd>`,
  );
  return `<dl class="codes">\n${entries.join('\n')}\n</dl>`;
}

/** Fills the placeholders of an advice, and escapes its angle brackets. */
function escapeAdvice(text: string): string {
  const { seconds, allowed } = { seconds: 'the', allowed: 'those in Allow' };
  return fillPlaceholders(text, { seconds, allowed })
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
