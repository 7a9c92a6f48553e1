import { fillPlaceholders } from '#platform/kernel/error-catalogue.js';
import { ERROR_CATALOGUE, ERROR_CODES } from '#web/docs/error-catalogue.js';
import { GENERATED_PYTHON, renderDocstring } from './python-client.js';
import { GENERATED_TYPESCRIPT } from './typescript-client.js';

/** Renders a class for each error code, for both clients. */

type ErrorClass = { name: string; code: string; description: string };

/** What the clients report themselves. */
const CLIENT_ERRORS: ErrorClass[] = [
  { name: 'NoResponseError', code: 'no_response', description: 'No response came.' },
  { name: 'TimedOutError', code: 'timed_out', description: 'The service took too long.' },
];

const CLASSES: ErrorClass[] = [
  ...ERROR_CODES.map((code) => ({
    name: toClassName(code),
    code,
    description: `${ERROR_CATALOGUE[code].status}: ${describeCode(code)}`,
  })),
  ...CLIENT_ERRORS,
];

export function renderTypescriptErrors(): string {
  const classes = CLASSES.map(
    ({ name, code, description }) => `/** ${description} */
export class ${name} extends InkpadError {
  declare readonly code: '${code}';
}
`,
  );
  const entries = CLASSES.map(({ name, code }) => `  ${code}: ${name},`);
  return `${GENERATED_TYPESCRIPT}import { InkpadError } from './inkpad-error.js';

${classes.join('\n')}
export const ERROR_CLASSES = {
${entries.join('\n')}
};
`;
}

export function renderPythonErrors(): string {
  const classes = CLASSES.map(
    ({ name, code, description }) => `class ${name}(InkpadError):
${renderDocstring(description, '    ').join('\n')}

    code: Literal["${code}"]
`,
  );
  const names = CLASSES.map(({ name }) => `    "${name}",`);
  const entries = CLASSES.map(({ name, code }) => `    "${code}": ${name},`);
  return `"""A class for each error code."""

${GENERATED_PYTHON}

from __future__ import annotations

from typing import Literal

from .errors import InkpadError

__all__ = [
${names.join('\n')}
]


${classes.join('\n\n')}

ERROR_CLASSES: dict[str, type[InkpadError]] = {
${entries.join('\n')}
}
`;
}

/** Converts a code such as `insufficient_stamps` to `InsufficientStampsError`. */
function toClassName(code: string): string {
  const words = code.split('_').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return `${words.join('')}Error`;
}

function describeCode(code: (typeof ERROR_CODES)[number]): string {
  return fillPlaceholders(ERROR_CATALOGUE[code].meaning, {
    seconds: 'the',
    allowed: 'those in Allow',
  });
}
