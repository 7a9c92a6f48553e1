import type { Config } from '#configuration/config.js';
import { ADMIN_DOCUMENT } from '#platform/http/path.js';
import type { ClientPackage } from './client-packages.js';
import { listErrorEntries, listIssueCodes } from './error-codes.js';
import type { Guide, Menu } from './guides.js';
import type { Operation, OperationGroup } from './operations.js';
import { POSTMAN } from './postman.js';
import type { Field } from './schema-fields.js';
import { listSettings } from './settings-list.js';
import { renderVersionState } from './version-state.js';

/** Renders the documentation for programs that read: every guide as Markdown, and their index. */

/** Fills in what a guide leaves to the service. */
export function renderMarkdownPage(
  { markdown }: Guide,
  { packages, config, now }: { packages: readonly ClientPackage[]; config: Config; now: Date },
): string {
  return markdown
    .replace('<!-- codes -->', renderErrorCodes)
    .replace('<!-- issues -->', renderIssueCodes)
    .replace('<!-- settings -->', renderSettings)
    .replace('<!-- clients -->', () => renderPackages(packages))
    .replace('<!-- state -->', () => renderVersionState(config, now).replaceAll(/<[^>]*>/g, ''))
    .replaceAll('%ADDRESS%', config.publicUrl);
}

function renderErrorCodes(): string {
  return listErrorEntries()
    .map(
      ({ code, status, meaning, advice }) =>
        `- \`${code}\` (${status}): ${meaning} What to do: ${advice}`,
    )
    .join('\n');
}

function renderIssueCodes(): string {
  return listIssueCodes()
    .map(({ code, messages }) => `- \`${code}\`: ${messages}`)
    .join('\n');
}

function renderSettings(): string {
  return listSettings()
    .map(({ description, settings }) => {
      const names = settings.map(({ name, value }) => `\`${name}${value && `=${value}`}\``);
      return `- ${names.join(', ')}: ${description}`;
    })
    .join('\n');
}

/** Renders the operations of a reference, with what they take and return. */
export function renderReferenceMarkdown(title: string, groups: readonly OperationGroup[]): string {
  const sections = groups.map(({ name, description, operations }) =>
    [`## ${name}`, description, ...operations.map(renderOperation)].join('\n\n'),
  );
  return `${[`# ${title}`, ...sections].join('\n\n')}\n`;
}

function renderOperation(operation: Operation): string {
  const { method, path, isEvent, summary, description, parameters, body, success } = operation;
  const parts = [
    `### ${isEvent ? path : summary}`,
    isEvent ? summary : `\`${method} ${path}\``,
    description,
    renderFields('Parameters', parameters),
    renderFields(isEvent ? 'Fields' : 'Body', body?.fields ?? []),
    isEvent ? '' : renderFields(`Response ${success.status}`, success.body?.fields ?? []),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

function renderFields(label: string, fields: readonly Field[]): string {
  if (fields.length === 0) return '';
  const lines = fields.map(({ name, type, isRequired, description, values }) => {
    const options = values.length > 0 ? ` One of ${values.join(', ')}.` : '';
    return `- \`${name}\` (${type}${isRequired ? ', required' : ''}): ${description}${options}`;
  });
  return `${label}:\n\n${lines.join('\n')}`;
}

function renderPackages(packages: readonly ClientPackage[]): string {
  const commands = packages.map(({ installer, path }) => `${installer} install %ADDRESS%${path}`);
  return ['```sh', ...commands, '```'].join('\n');
}

/** Renders the index of the documentation in the form of llmstxt.org. */
export function renderLlmsIndex(menu: Menu, guides: readonly Guide[], publicUrl: string): string {
  const isGuide = (path: string) => guides.some((guide) => guide.path === path);
  const sections = menu.map(({ title, links }) => {
    const lines = links
      .filter(({ path }) => isGuide(path))
      .map(({ path, name, about }) => `- [${name}](${publicUrl}${path}.md): ${about}`);
    return `## ${title}\n\n${lines.join('\n')}\n`;
  });
  return `# Inkpad

> Self-hosted loyalty stamp cards for shops: a REST API, signed webhooks, and a history in which every balance can be explained.

The API of this service is at ${publicUrl}/api/v1. Every request except the status needs the header \`Authorization: Bearer <API_TOKEN>\`.
Send an \`Idempotency-Key\` with every write. Ignore fields that you do not know. A summary with samples: [Inkpad for developers](${publicUrl}/docs.md).

${sections.join('\n')}
## For programs

- [OpenAPI document](${publicUrl}/openapi.json): Every operation, field and error, as OpenAPI 3.1.
- [OpenAPI document of the admin API](${publicUrl}${ADMIN_DOCUMENT}): The operations that provision stores, users and tokens.
- [Postman collection](${publicUrl}${POSTMAN}): Every operation with an example, as a collection v2.1.
`;
}
